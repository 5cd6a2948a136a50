// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A value of report.json with its JSON pointer. The page prints every number from such a value. So
// each number on the page names its place in report.json (data-path), and a test can compare the
// two.
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

// A view of a document that passed CheckReport and must outlive it. A missing member that the
// schema requires is a bug.
class Record {
 public:
  explicit Record(const JsonElement& document) : value_(document) {}

  bool Has(std::string_view key) const;
  Record operator[](std::string_view key) const;
  Record operator[](size_t index) const;  // linear time; Items() reads all at once
  std::optional<Record> Find(std::string_view path) const;      // path like "local.kl.mean"
  size_t size() const;                                          // size of an array or object
  std::vector<Record> Items() const;                            // elements of an array
  std::vector<std::pair<std::string, Record>> Members() const;  // members, sorted by key

  double Number() const { return value_.get_double().value(); }
  bool True() const { return value_.is_bool() && value_.get_bool().value_unsafe(); }
  bool IsObject() const { return value_.is_object(); }
  bool IsString() const { return value_.is_string(); }
  // Returns a string unchanged, a number as in the record, anything else as JSON. The text is
  // untrusted: use Html() before putting it into a page.
  std::string Text() const;
  std::string TextOr(std::string_view key, std::string_view fallback) const;
  bool IsText(std::string_view key) const;    // whether a member is a non-empty string
  bool IsNumber(std::string_view key) const;  // whether a member is a number

  std::string pointer() const;

 private:
  // A step of the JSON pointer. The pointer's text is made only on demand, because most values are
  // not shown.
  struct Step {
    const char* key;  // in the document; null for an element
    size_t size;      // size of the key, or index of the element
  };
  Record Below(const JsonElement& value, Step step) const;
  Record Member(std::string_view key, const JsonElement& value) const {
    return Below(value, {key.data(), key.size()});
  }
  Record Element(size_t index, const JsonElement& value) const {
    return Below(value, {nullptr, index});
  }

  JsonElement value_;
  std::string prefix_;  // start of the pointer, if it has too many steps to store
  std::array<Step, 8> steps_;
  size_t num_steps_ = 0;
};

}  // namespace oscar
