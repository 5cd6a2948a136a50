// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed access to the members of a JSON object. It remembers which members were read, so that the
// others can be reported as unknown. Null and empty members count as missing.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar {

// An InputError that stores the field at fault, for callers that continue with the other fields.
// `where` is text such as "config.json: text_config"; the field may be missing.
class FieldError : public InputError {
 public:
  FieldError(std::string where, std::string key, const std::string& message)
      : InputError(message), where_(std::move(where)), key_(std::move(key)) {}
  const std::string& where() const { return where_; }
  const std::string& key() const { return key_; }

 private:
  std::string where_, key_;
};

// Whether a member has no content: null, "", [] or {}. False and 0 are content.
bool IsEmptyMember(const Json& value);

class ObjectFields {
 public:
  // Keeps a reference to `object`. `what` is a name such as "config.json: quantization_config".
  // Throws InputError if `object` is not an object.
  ObjectFields(const Json& object, std::string what);

  // Returns the member, or nullptr if it is missing or empty. All accessors mark the key as read.
  virtual const Json* Find(std::string_view key);
  bool Bool(std::string_view key, bool fallback);
  std::string String(std::string_view key);
  std::string String(std::string_view key, std::string_view fallback);

  // Throws FieldError "<what>: <key> ..."; appends the value found if there is one.
  [[noreturn]] void Fail(std::string_view key, const std::string& problem) const;
  const std::string& what() const { return what_; }

 protected:
  ~ObjectFields() = default;
  // Fails if `value` is not an integer in [smallest, largest].
  int64_t Integer(std::string_view key, const Json& value, int64_t smallest, int64_t largest) const;

  const Json& object_;
  std::string what_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace oscar
