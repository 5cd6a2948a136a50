// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A value of report.json together with its JSON pointer. Everything the page shows is printed from
// one, so that every number on it says where in the record it stands (data-path), and a test can
// hold the page against the record.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// One step of a JSON pointer: ~ and / escaped as in RFC 6901.
std::string PointerToken(std::string_view key);

// A view: the document must outlive it. The document has passed CheckReport, so a member that the
// schema requires and that is not there is our bug.
class Record {
 public:
  explicit Record(const Json& document) : value_(&document) {}

  bool Has(std::string_view key) const;
  Record operator[](std::string_view key) const;
  Record operator[](size_t index) const;
  size_t size() const { return value_->size(); }
  std::vector<Record> Items() const;                            // of an array
  std::vector<std::pair<std::string, Record>> Members() const;  // of an object, sorted by key

  double Number() const { return value_->get<double>(); }
  bool True() const { return value_->is_boolean() && value_->get<bool>(); }
  // Strings as they are, anything else as JSON. Untrusted: never into a page without Html().
  std::string Text() const;
  std::string TextOr(std::string_view key, std::string_view fallback) const;
  bool IsText(std::string_view key) const;    // a member that is a non-empty string
  bool IsNumber(std::string_view key) const;  // a member that is a number

  const Json& json() const { return *value_; }
  const std::string& pointer() const { return pointer_; }

 private:
  Record(const Json& value, std::string pointer) : value_(&value), pointer_(std::move(pointer)) {}
  Record Below(const Json& value, std::string_view token) const;

  const Json* value_;
  std::string pointer_;
};

}  // namespace oscar
