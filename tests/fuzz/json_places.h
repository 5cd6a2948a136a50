// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a JSON and their places, for code that changes them.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace oscar::fuzz {

// The place of a value: its parent, and the name or number of the value there.
struct Place {
  Json* parent;  // null: the whole
  std::string key;
  size_t index;
};
// Appends the places of all values within `value` to `places`, at most some 20,000.
void Collect(Json& value, std::vector<Place>& places);
Json& At(const Place& place, Json& whole);

// The JSON of an input. It follows its length, as in safetensors, or it follows bytes that say
// which file it is and ends before a NUL.
struct JsonPart {
  size_t begin, end;
  bool sized;
  Json json;  // discarded where it is none
};
JsonPart PartOf(const std::string& input);
// `input` with `part` in the place of its own.
std::string With(const JsonPart& part, const std::string& input);

// A value that Dump spells as JsonSpellings()[i].
Json Spelling(size_t i);
std::string Dump(const Json& json);

}  // namespace oscar::fuzz
