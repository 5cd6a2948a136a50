// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mutates inputs, for the plain driver and for custom mutators of libFuzzer.
#include <algorithm>
#include <array>

#include "tests/fuzz/json_places.h"

namespace oscar::fuzz {
namespace {

size_t Below(size_t bound, Random& random) { return bound == 0 ? 0 : random() % bound; }

// Returns a boundary value for code that counts, converts or compares.
Json InterestingValue(Random& random) {
  if (random() % 8 == 0) return Spelling(Below(JsonSpellings().size(), random));
  static const Json kValues = Json::parse(R"([null, true, false, 0, 1, -1, 2, 3, 7, 64, 255, 256,
      4095, 65536, 16777216, 2147483647, 2147483648, 4294967296, -2147483649, 9007199254740993,
      2305843009213693952, 4611686018427387904, 9223372036854775807, -9223372036854775808,
      18446744073709551615, 0.0, -0.0, 0.5, 1e-320, 1e308, 1e30, 1.5, "", "0", "a",
      "\u00e9\ud83d\ude00", "..", "../x", "model", [], {}, [1, 2, 3], [[]]])");
  static const Json kLong = std::string(300, 'x');
  const size_t i = Below(kValues.size() + 1, random);
  return i == kValues.size() ? kLong : kValues[i];
}

void ChangeNumber(Json& value, Random& random) {
  if (!value.is_number() || random() % 4 == 0) {
    value = InterestingValue(random);
    return;
  }
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    const std::array<double, 8> changed = {0.0,        -0.0,   -number, 2 * number,
                                           number / 2, 1e-320, 1e308,   -1.0};
    value = changed[Below(changed.size(), random)];
    return;
  }
  const auto number = value.get<uint64_t>();
  // With the last change, products of sizes can overflow to their old value.
  const std::array<uint64_t, 8> changed = {number + 1,
                                           number - 1,
                                           number * 2,
                                           number / 2,
                                           ~number,
                                           0,
                                           number ^ (1ULL << (random() % 64)),
                                           number + (1ULL << (56 + random() % 8))};
  value = static_cast<int64_t>(changed[Below(changed.size(), random)]);
}

void ChangeText(Json& value, Random& random) {
  auto text = value.get<std::string>();
  // Pieces of text, of paths and of regular expressions.
  static constexpr std::string_view kPieces[] = {
      "\n",     "\xC2\xA0", "\u0301",   "%",       "\\",    "/",     ".",           "0",
      "\uFDFA", "#",        "<script>", "(a|b)*",  "[^x]",  "{2,9}", "*+",          "??",
      "\\p{L}", "\\P{Lu}",  "\\x{41}",  "\\u0041", "\\x41", "\\101", "\\h",         "\\H",
      "\\R",    "\\X",      "\\G",      "\\K",     "\\A",   "\\z",   "\\Z",         "\\b",
      "\\cA",   "\\Q",      "\\1",      "\\k<a>",  "(?<a>", "(?i:",  "(?>",         "(?=",
      "(?!",    "(?<=",     "(?<!",     "(?#",     "(?m)",  "&&",    "[[:^alpha:]", "[a-z&&[^b]]"};
  const std::string_view piece = kPieces[Below(std::size(kPieces), random)];
  // Only character boundaries are used: text that is not UTF-8 is refused at once.
  size_t at = Below(text.size() + 1, random);
  while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
  if (random() % 2 == 0) {
    text.insert(at, piece);
  } else {
    text = text.substr(0, at) + text;
  }
  value = text;
}

void ChangeScalar(Json& value, Random& random) {
  if (value.is_string()) {
    ChangeText(value, random);
  } else {
    ChangeNumber(value, random);
  }
}

void Change(Json& whole, Random& random) {
  std::vector<Place> places = {{nullptr, "", 0}};
  Collect(whole, places);
  const Place place = places[Below(places.size(), random)];
  const Json other = At(places[Below(places.size(), random)], whole);
  Json& value = At(place, whole);
  switch (random() % 10) {
    case 0:
      value = InterestingValue(random);
      return;
    case 1:
      value = other;
      return;
    case 2:
      if (place.parent == nullptr) return;
      if (place.parent->is_object()) {
        place.parent->erase(place.key);
      } else {
        place.parent->erase(place.index);
      }
      return;
    case 3:
      if (value.is_array()) value.push_back(other);
      if (value.is_object()) {
        const Json name = InterestingValue(random);
        value[name.is_string() ? name.get<std::string>() : name.dump()] = other;
      }
      return;
    case 4:  // repeat the value
      if (place.parent != nullptr && place.parent->is_array()) {
        const Json same = value;
        for (size_t i = random() % 70; i > 0; --i) place.parent->push_back(same);
      }
      return;
    case 5:  // rename a member
      if (place.parent != nullptr && place.parent->is_object()) {
        Json moved = value;
        std::string name = places[Below(places.size(), random)].key;
        if (name.empty() || random() % 2 == 0)
          name = other.is_string() ? other.get<std::string>()
                                   : place.key + std::to_string(random() % 3);
        place.parent->erase(place.key);
        (*place.parent)[name] = moved;
      }
      return;
    case 6: {  // change all equal values, so that values that must agree still do
      const Json old = value;
      if (old.is_structured()) return;
      Json changed = old;
      ChangeScalar(changed, random);
      for (const Place& same : places)
        if (Json& there = At(same, whole); there == old) there = changed;
      return;
    }
    case 7: {  // change or remove a member in all elements of an array
      const auto row = std::ranges::find_if(places, [&](const Place& at) {
        return at.parent != nullptr && at.parent->is_array() && &At(at, whole) == place.parent;
      });
      if (row == places.end() || place.key.empty()) return;
      Json changed = random() % 2 == 0 ? other : value;
      if (!changed.is_structured()) ChangeScalar(changed, random);
      const bool erased = random() % 3 == 0;
      for (Json& element : *row->parent) {
        if (!element.is_object() || !element.contains(place.key)) continue;
        if (erased) {
          element.erase(place.key);
        } else {
          element[place.key] = changed;
        }
      }
      return;
    }
    default:
      ChangeScalar(value, random);
  }
}

}  // namespace

std::string MutateBytes(std::string input, size_t max_bytes, Random& random) {
  for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
    const size_t at = Below(input.size() + 1, random);
    const size_t count = std::min<size_t>(Below(input.size() - at + 1, random), 1 + random() % 16);
    switch (random() % 6) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(random());
        break;
      case 2:
        input.erase(at, count);
        break;
      case 3:
        input.insert(at, input.substr(Below(input.size(), random), count));
        break;
      case 4: {  // a number of 1, 2, 4 or 8 bytes
        const uint64_t edges[] = {0,          1,          0x7F,  0xFF,      0xFFFF,
                                  0x7FFFFFFF, 0xFFFFFFFF, ~0ULL, 1ULL << 63};
        const uint64_t number = edges[random() % std::size(edges)] + random() % 3 - 1;
        const size_t bytes = size_t{1} << random() % 4;
        for (size_t i = 0; i < bytes && at + i < input.size(); ++i)
          input[at + i] = static_cast<char>(number >> (8 * i));
        break;
      }
      default:
        input.insert(at, std::string(count, static_cast<char>(random())));
    }
  }
  if (input.size() > max_bytes) input.resize(max_bytes);
  return input;
}

std::string MutateJson(const std::string& input, Random& random) {
  Json json = ParseLoosely(input);
  if (json.is_discarded()) return MutateBytes(input, 1 << 16, random);
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) Change(json, random);
  return Dump(json);
}

std::string MutateSafetensors(const std::string& input, Random& random) {
  JsonPart part = PartOf(input);
  if (part.json.is_discarded() || random() % 4 == 0) return MutateBytes(input, 8192, random);
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) Change(part.json, random);
  return With(part, input);
}

std::string SpliceJson(const std::string& input, const std::string& other, Random& random) {
  JsonPart part = PartOf(input), from = PartOf(other);
  if (part.json.is_discarded() || from.json.is_discarded()) return {};
  std::vector<Place> taken;
  Collect(from.json, taken);
  if (taken.empty()) return {};
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const Place& source = taken[Below(taken.size(), random)];
    const Json value = At(source, from.json);
    std::vector<Place> places = {{nullptr, "", 0}};
    Collect(part.json, places);
    std::erase_if(places,
                  [&](const Place& place) { return !At(place, part.json).is_structured(); });
    if (places.empty()) return {};
    if (!source.key.empty() && random() % 2 == 0) {  // prefer objects that have such a member
      std::vector<Place> named = places;
      std::erase_if(named,
                    [&](const Place& place) { return !At(place, part.json).contains(source.key); });
      if (!named.empty()) places = std::move(named);
    }
    Json& target = At(places[Below(places.size(), random)], part.json);
    if (target.is_object()) {
      target[source.key.empty() ? std::string("a") : source.key] = value;
    } else if (target.empty() || random() % 2 == 0) {
      target.push_back(value);
    } else {
      target[Below(target.size(), random)] = value;
    }
  }
  return With(part, input);
}

std::string MutateJsonAndText(const std::string& input, Random& random) {
  const size_t cut = std::min(input.find('\0'), input.size());
  std::string json = input.substr(0, cut);
  std::string text = cut < input.size() ? input.substr(cut + 1) : std::string();
  if (random() % 3 == 0) {
    text = MutateBytes(text, 256, random);
  } else {
    json = MutateJson(json, random);
  }
  return json + '\0' + text;
}

}  // namespace oscar::fuzz
