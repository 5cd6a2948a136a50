// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/formats/quantization_fields.h"

#include <fmt/format.h>

namespace oscar {

int64_t QuantizationFields::Int(std::string_view key, int64_t fallback) {
  constexpr int64_t kLargest = int64_t{1} << 31;
  const Json* value = Find(key);
  return value == nullptr ? fallback : Integer(key, *value, -kLargest, kLargest);
}

std::vector<std::string> QuantizationFields::Strings(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) Fail(key, "must be a list of strings");
  std::vector<std::string> strings;
  for (const Json& entry : *value) {
    if (!entry.is_string()) Fail(key, "must be a list of strings");
    strings.push_back(entry.get<std::string>());
  }
  return strings;
}

void QuantizationFields::Ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) read_.emplace(key);
}

void QuantizationFields::Refuse(std::string_view key, std::string_view effect) {
  const Json* value = Find(key);
  if (value != nullptr && *value != false) Fail(key, fmt::format("is not implemented: {}", effect));
}

std::vector<std::string> QuantizationFields::Unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (!read_.contains(key) && !IsEmptyMember(value)) keys.push_back(key);
  }
  return keys;
}

}  // namespace oscar
