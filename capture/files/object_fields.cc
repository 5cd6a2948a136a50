// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/object_fields.h"

#include <fmt/format.h>

namespace oscar {
namespace {

std::string Shortened(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace

bool IsEmptyMember(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || value == "";
}

ObjectFields::ObjectFields(const Json& object, std::string what)
    : object_(object), what_(std::move(what)) {
  if (!object_.is_object()) {
    throw InputError(
        fmt::format("{}: expected a JSON object, found {}", what_, Shortened(object_)));
  }
}

void ObjectFields::Fail(std::string_view key, const std::string& problem) const {
  const auto found = object_.find(key);
  const std::string value =
      found == object_.end() ? "" : fmt::format(" (found {})", Shortened(*found));
  throw FieldError(what_, std::string(key), fmt::format("{}: {} {}{}", what_, key, problem, value));
}

const Json* ObjectFields::Find(std::string_view key) {
  read_.emplace(key);
  const auto found = object_.find(key);
  return found == object_.end() || IsEmptyMember(*found) ? nullptr : &*found;
}

int64_t ObjectFields::Integer(std::string_view key, const Json& value, int64_t smallest,
                              int64_t largest) const {
  if (!value.is_number_integer()) Fail(key, "must be an integer");
  // A value above INT64_MAX is stored unsigned and would wrap around.
  const bool wraps =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = wraps ? INT64_MAX : value.get<int64_t>();
  if (number < smallest || number > largest)
    Fail(key, fmt::format("must be from {} to {}", smallest, largest));
  return number;
}

bool ObjectFields::Bool(std::string_view key, bool fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Fail(key, "must be true or false");
  return value->get<bool>();
}

std::string ObjectFields::String(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) Fail(key, "is missing: a string is needed");
  if (!value->is_string()) Fail(key, "must be a string");
  return value->get<std::string>();
}

std::string ObjectFields::String(std::string_view key, std::string_view fallback) {
  return Find(key) == nullptr ? std::string(fallback) : String(key);
}

}  // namespace oscar
