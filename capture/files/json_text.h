// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON that is looked at where simdjson has read it: a document that is read once needs no tree of
// its own, which takes three times as long to make and to free as the text takes to read.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// A view: the JsonText must outlive it. The keys of every object are in order, each there once.
using JsonElement = simdjson::dom::element;
using JsonElements = simdjson::dom::array;
using JsonMembers = simdjson::dom::object;
using JsonType = simdjson::dom::element_type;

// False for what simdjson refuses, or would not read as it stands: ParseStrictJson says why. The
// root lives as long as the parser, until it reads again.
bool ReadBySimdjson(std::string_view text, simdjson::dom::parser& parser, JsonElement& root);

class JsonText {
 public:
  // Refuses what ParseStrictJson refuses, with its words.
  JsonText(std::string_view text, std::string_view what, const JsonLimits& limits = {});
  // InputError naming `what` and the place of a number that is not finite.
  JsonText(const Json& value, std::string_view what);
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  const JsonElement& root() const { return root_; }

 private:
  void Take(const Json& value);

  simdjson::dom::parser parser_;
  JsonElement root_;
};

// Of values whose type was looked at. FindMember looks at one member after the other.
JsonElements ElementsOf(const JsonElement& array);
JsonMembers MembersOf(const JsonElement& object);
// {key, value}, both the document's.
std::optional<simdjson::dom::key_value_pair> FindMember(const JsonElement& object,
                                                        std::string_view key);

Json ToJson(const JsonElement& value);

}  // namespace oscar
