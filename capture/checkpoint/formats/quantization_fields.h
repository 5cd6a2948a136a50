// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed access to a quantization_config that remembers what was read, so that a field nobody knows
// is noticed. Null means "absent" in these files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

class QuantizationFields {
 public:
  // Keeps a reference to `object`. `what`: "config.json: quantization_config". InputError if it is
  // not an object.
  QuantizationFields(const Json& object, std::string what);

  const Json* Find(std::string_view key);  // nullptr if missing or null
  std::string String(std::string_view key, std::string_view fallback);
  int64_t Int(std::string_view key, int64_t fallback);  // in ±2^31
  bool Bool(std::string_view key, bool fallback);
  std::vector<std::string> Strings(std::string_view key);  // empty if missing

  // Fields that cannot change a weight.
  void Ignore(std::initializer_list<std::string_view> keys);
  // A field that may only be missing, null or empty ({}, [], ""), or false: else it `effect`.
  void Refuse(std::string_view key, std::string_view effect);

  std::vector<std::string> Unread() const;
  [[noreturn]] void Fail(std::string_view key, const std::string& problem) const;
  const std::string& what() const { return what_; }

 private:
  const Json& object_;
  std::string what_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace oscar
