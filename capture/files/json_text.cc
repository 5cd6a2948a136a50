// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Whether a value is within the limits and the keys of every object are sorted, as in canonical
// JSON. Sorted keys are unique.
bool IsPlain(const JsonElement& value, const JsonLimits& limits, size_t depth, size_t& values) {
  if (++values > limits.max_values) return false;
  if (value.is_array()) {
    if (depth == limits.max_depth) return false;
    for (const JsonElement element : ElementsOf(value))
      if (!IsPlain(element, limits, depth + 1, values)) return false;
  } else if (value.is_object()) {
    if (depth == limits.max_depth) return false;
    std::optional<std::string_view> last;
    for (const auto& [key, member] : MembersOf(value)) {
      if (last && !(*last < key)) return false;
      last = key;
      if (!IsPlain(member, limits, depth + 1, values)) return false;
    }
  }
  return true;
}

// Returns the JSON pointer of the first number that is not finite; built only if there is one.
std::optional<std::string> PlaceOfNonFinite(const Json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return "";
  if (!value.is_structured()) return std::nullopt;
  for (const auto& member : value.items()) {
    if (const auto below = PlaceOfNonFinite(member.value()))
      return (Json::json_pointer() / member.key()).to_string() + *below;
  }
  return std::nullopt;
}

}  // namespace

JsonText::JsonText(std::string_view text, std::string_view what, const JsonLimits& limits) {
  size_t values = 0;
  if (text.size() > limits.max_bytes || !ReadBySimdjson(text, parser_, root_) ||
      !IsPlain(root_, limits, 0, values))
    Take(ParseStrictJson(text, what, limits));
}

JsonText::JsonText(const Json& value, std::string_view what) {
  if (const auto at = PlaceOfNonFinite(value)) {
    throw InputError(
        fmt::format("{}: {}: expected a finite number, found NaN or Inf", what, Escaped(*at)));
  }
  Take(value);
}

void JsonText::Take(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  // ReadBySimdjson refused "-0", so here it can only occur inside strings.
  OSCAR_CHECK(parser_.parse(text).get(root_) == simdjson::SUCCESS);
}

JsonElements ElementsOf(const JsonElement& array) {
  OSCAR_CHECK(array.is_array());
  return array.get_array().value_unsafe();
}
JsonMembers MembersOf(const JsonElement& object) {
  OSCAR_CHECK(object.is_object());
  return object.get_object().value_unsafe();
}
std::optional<simdjson::dom::key_value_pair> FindMember(const JsonElement& object,
                                                        std::string_view key) {
  for (const simdjson::dom::key_value_pair member : MembersOf(object))
    if (member.key == key) return member;
  return std::nullopt;
}

Json ToJson(const JsonElement& value) {
  return ParseStrictJson(simdjson::minify(value), "a part of a document");
}

}  // namespace oscar
