// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a JSON document and their places, for code that changes them.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace oscar::fuzz {

// The place of a value: its parent, and the name or index of the value there.
struct Place {
  Json* parent;  // null: the whole document
  std::string key;
  size_t index;
};
// Appends the places of all values within `value` to `places`, about 20,000 at most.
void Collect(Json& value, std::vector<Place>& places);
Json& At(const Place& place, Json& whole);

// The JSON in an input. It either follows its length, as in safetensors, or follows bytes that name
// the kind of file, and then ends before a NUL.
struct JsonPart {
  size_t begin, end;
  bool sized;
  Json json;  // discarded if it is not JSON
};
JsonPart PartOf(const std::string& input);
// Returns `input` with its JSON replaced by `part`.
std::string With(const JsonPart& part, const std::string& input);

// Returns a value that Dump writes as JsonSpellings()[i].
Json Spelling(size_t i);
std::string Dump(const Json& json);

}  // namespace oscar::fuzz
