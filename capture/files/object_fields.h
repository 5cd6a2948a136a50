// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed access to the members of a JSON object that remembers which were read, so that one nobody
// knows is noticed. Null and empty members mean "absent" in the files that are read so.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "capture/files/strict_json.h"
#include "linalg/error.h"

namespace oscar {

// An InputError that knows which field it blames, for those who want to know about the other fields
// too. `where` is text, "config.json: text_config", and the field may be one that is not there.
class FieldError : public InputError {
 public:
  FieldError(std::string where, std::string key, const std::string& message)
      : InputError(message), where_(std::move(where)), key_(std::move(key)) {}
  const std::string& where() const { return where_; }
  const std::string& key() const { return key_; }

 private:
  std::string where_, key_;
};

// Null, "", [] or {}: a member that says nothing. False and 0 do.
bool IsEmptyMember(const Json& value);

class ObjectFields {
 public:
  // Keeps a reference to `object`. `what`: "config.json: quantization_config". InputError if it is
  // not an object.
  ObjectFields(const Json& object, std::string what);

  // The member, or nullptr if it is missing or empty. All accessors mark the key as read.
  virtual const Json* Find(std::string_view key);
  bool Bool(std::string_view key, bool fallback);
  std::string String(std::string_view key);
  std::string String(std::string_view key, std::string_view fallback);

  // Throws FieldError "<what>: <key> ..."; the value found is appended where there is one.
  [[noreturn]] void Fail(std::string_view key, const std::string& problem) const;
  const std::string& what() const { return what_; }

 protected:
  ~ObjectFields() = default;
  // Fails if `value` is no integer in [smallest, largest].
  int64_t Integer(std::string_view key, const Json& value, int64_t smallest, int64_t largest) const;

  const Json& object_;
  std::string what_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace oscar
