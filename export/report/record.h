// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A value of report.json together with its JSON pointer. Everything the page shows is printed from
// one, so that every number on it says where in the record it stands (data-path), and a test can
// hold the page against the record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/files/json_text.h"

namespace oscar {

// A view: the document must outlive it. The document has passed CheckReport, so a member that the
// schema requires and that is not there is our bug.
class Record {
 public:
  explicit Record(const JsonElement& document) : value_(document) {}

  bool Has(std::string_view key) const;
  Record operator[](std::string_view key) const;
  Record operator[](size_t index) const;  // walks from the first element; Items() reads all at once
  std::optional<Record> Find(std::string_view path) const;      // "local.kl.mean"
  size_t size() const;                                          // of an array or object
  std::vector<Record> Items() const;                            // of an array
  std::vector<std::pair<std::string, Record>> Members() const;  // of an object, sorted by key

  double Number() const { return value_.get_double().value(); }
  bool True() const { return value_.is_bool() && value_.get_bool().value_unsafe(); }
  bool IsObject() const { return value_.is_object(); }
  bool IsString() const { return value_.is_string(); }
  // Strings as they are, numbers as the record has them, anything else as JSON. Untrusted: never
  // into a page without Html().
  std::string Text() const;
  std::string TextOr(std::string_view key, std::string_view fallback) const;
  bool IsText(std::string_view key) const;    // a member that is a non-empty string
  bool IsNumber(std::string_view key) const;  // a member that is a number

  std::string pointer() const;

 private:
  // A step of the JSON pointer, which is composed only on demand: most values are not shown.
  struct Step {
    const char* key;  // the document's; null: an element
    size_t size;      // of the key, or the element's index
  };
  Record Below(const JsonElement& value, Step step) const;
  Record Member(std::string_view key, const JsonElement& value) const {
    return Below(value, {key.data(), key.size()});
  }
  Record Element(size_t index, const JsonElement& value) const {
    return Below(value, {nullptr, index});
  }

  JsonElement value_;
  std::string prefix_;  // of the pointer, where it has more steps than there is room for
  std::array<Step, 8> steps_;
  size_t num_steps_ = 0;
};

}  // namespace oscar
