// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads config.json so that nothing in it goes unnoticed: every access marks its key, and Finish()
// judges the keys that nobody asked for by the tables of config_fields.h. Trap: null means "absent"
// in these files.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/model/model_spec.h"

namespace oscar {

class ConfigReader {
 public:
  // Keeps a reference to `object`. InputError if it is not an object.
  ConfigReader(const Json& object, std::string what);

  // The member, or nullptr if it is missing or null. All accessors mark the key as read.
  const Json* Find(std::string_view key);

  bool Has(std::string_view key) const { return object_.contains(key); }  // null or not

  // An integer in [1, 2^24] ([1, 2^31] for Positions), so that products of three sizes cannot
  // overflow.
  int64_t Size(std::string_view key);
  std::optional<int64_t> OptionalSize(std::string_view key);
  std::optional<int64_t> OptionalCount(std::string_view key);  // from 0
  int64_t Positions(std::string_view key);
  // A finite number > 0.
  double Positive(std::string_view key);
  std::optional<double> OptionalPositive(std::string_view key);
  bool Bool(std::string_view key, bool fallback);
  std::string String(std::string_view key);
  std::string String(std::string_view key, std::string_view fallback);

  // Judges every key not read. Those that no table knows are errors, or returned if `options` let
  // them pass.
  std::vector<std::string> Finish(const SpecOptions& options) const;

  // Throws InputError "<what>: <key> ..." ; the value found is appended where there is one.
  [[noreturn]] void Fail(std::string_view key, const std::string& problem) const;
  const std::string& what() const { return what_; }

 private:
  int64_t Integer(std::string_view key, const Json& value, int64_t smallest, int64_t largest) const;

  const Json& object_;
  std::string what_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace oscar
