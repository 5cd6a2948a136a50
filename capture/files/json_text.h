// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON in place, from simdjson's result. Building and freeing a tree would take three times
// as long as parsing the text, which does not pay for a document that is read once.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// A view: the JsonText must outlive it. The keys of every object are sorted and unique.
using JsonElement = simdjson::dom::element;
using JsonElements = simdjson::dom::array;
using JsonMembers = simdjson::dom::object;
using JsonType = simdjson::dom::element_type;

// Returns false for text that simdjson refuses or would not read exactly; ParseStrictJson then
// gives the reason. The root is valid until the parser is destroyed or reads again.
bool ReadBySimdjson(std::string_view text, simdjson::dom::parser& parser, JsonElement& root);

class JsonText {
 public:
  // Throws the same errors as ParseStrictJson.
  JsonText(std::string_view text, std::string_view what, const JsonLimits& limits = {});
  // Throws InputError naming `what` and the place of a number that is not finite.
  JsonText(const Json& value, std::string_view what);
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  const JsonElement& root() const { return root_; }

 private:
  void Take(const Json& value);

  simdjson::dom::parser parser_;
  JsonElement root_;
};

// Use these for values whose type was checked. FindMember searches the members one by one.
JsonElements ElementsOf(const JsonElement& array);
JsonMembers MembersOf(const JsonElement& object);
// Returns {key, value}, both owned by the document.
std::optional<simdjson::dom::key_value_pair> FindMember(const JsonElement& object,
                                                        std::string_view key);

Json ToJson(const JsonElement& value);

}  // namespace oscar
