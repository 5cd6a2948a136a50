// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/formats/quantization_fields.h"

#include <fmt/format.h>

#include <utility>

#include "linalg/error.h"

namespace oscar {
namespace {

constexpr int64_t kLargestInt = int64_t{1} << 31;

std::string Shortened(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace

QuantizationFields::QuantizationFields(const Json& object, std::string what)
    : object_(object), what_(std::move(what)) {
  if (!object_.is_object()) {
    throw InputError(
        fmt::format("{}: expected a JSON object, found {}", what_, Shortened(object_)));
  }
}

void QuantizationFields::Fail(std::string_view key, const std::string& problem) const {
  const auto found = object_.find(key);
  const std::string value =
      found == object_.end() ? "" : fmt::format(" (found {})", Shortened(*found));
  throw InputError(fmt::format("{}: {} {}{}", what_, key, problem, value));
}

const Json* QuantizationFields::Find(std::string_view key) {
  read_.emplace(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::string QuantizationFields::String(std::string_view key, std::string_view fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) Fail(key, "must be a string");
  return value->get<std::string>();
}

int64_t QuantizationFields::Int(std::string_view key, int64_t fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_integer()) Fail(key, "must be an integer");
  const bool wraps =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(kLargestInt);
  const int64_t number = wraps ? kLargestInt + 1 : value->get<int64_t>();
  if (number < -kLargestInt || number > kLargestInt) Fail(key, "is out of range");
  return number;
}

bool QuantizationFields::Bool(std::string_view key, bool fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Fail(key, "must be true or false");
  return value->get<bool>();
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
  const bool neutral = value == nullptr || *value == false ||
                       ((value->is_object() || value->is_array()) && value->empty()) ||
                       *value == "";
  if (!neutral) Fail(key, fmt::format("is not implemented: {}", effect));
}

std::vector<std::string> QuantizationFields::Unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace oscar
