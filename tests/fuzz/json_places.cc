// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/json_places.h"

#include <algorithm>
#include <cstdlib>

#include "capture/checkpoint/safetensors_header.h"

namespace oscar::fuzz {
namespace {

// The prefix of texts that Dump replaces by one of JsonSpellings().
constexpr std::string_view kSpelling = "@spelling";

}  // namespace

Json ParseLoosely(std::string_view text) {
  constexpr int kDeepest = 1000;
  int depth = 0;
  for (const char c : text) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kDeepest) return Json(Json::value_t::discarded);
  }
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

void Collect(Json& value, std::vector<Place>& places) {
  if (places.size() > 20'000) return;
  if (value.is_object()) {
    for (auto& [key, member] : value.items()) {
      places.push_back({&value, key, 0});
      Collect(member, places);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      places.push_back({&value, "", i});
      Collect(value[i], places);
    }
  }
}

Json& At(const Place& place, Json& whole) {
  if (place.parent == nullptr) return whole;
  return place.parent->is_object() ? (*place.parent)[place.key] : (*place.parent)[place.index];
}

JsonPart PartOf(const std::string& input) {
  const size_t begin = std::min(input.find('{'), input.size());
  uint64_t length = 0;
  for (size_t i = kSafetensorsLengthBytes; begin == kSafetensorsLengthBytes && i-- > 0;)
    length = length << 8 | static_cast<uint8_t>(input[i]);
  const bool sized = length > 0 && length <= input.size() - begin;
  const size_t end = sized ? begin + length : std::min(input.find('\0', begin), input.size());
  return {begin, end, sized, ParseLoosely(input.substr(begin, end - begin))};
}

std::string With(const JsonPart& part, const std::string& input) {
  const std::string json = Dump(part.json);
  std::string before = input.substr(0, part.begin);
  for (size_t i = 0; part.sized && i < before.size(); ++i)
    before[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return before + json + input.substr(part.end);
}

Json Spelling(size_t i) { return std::string(kSpelling) + std::to_string(i); }

std::string Dump(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::vector<std::string>& spellings = JsonSpellings();
  const std::string begin = '"' + std::string(kSpelling);
  for (size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
    const size_t number = at + begin.size(), end = text.find('"', number);
    const std::string& spelling =
        spellings[std::strtoull(&text[number], nullptr, 10) % spellings.size()];
    text.replace(at, end + 1 - at, spelling);
    at += spelling.size();
  }
  return text;
}

}  // namespace oscar::fuzz
