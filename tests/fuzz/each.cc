// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The first inputs of a campaign: every single change of each seed. Mutation finds these late,
// because most of the inputs that it starts from are refused for other reasons.

#include "tests/fuzz/json_places.h"

namespace oscar::fuzz {
namespace {

// Longer than the small-string buffer of std::string.
constexpr const char* kLong = "_of_a_name_that_is_long";

// Visits each value with a path that is the same for all elements of an array. Of more than 100
// values, such as a vocabulary, it only visits the first 10.
template <class Visit>
void Walk(Json& value, const std::string& path, const Visit& visit) {
  constexpr size_t kVocabulary = 100, kSome = 10;
  for (size_t i = 0; auto& [key, member] : value.items()) {
    if (value.size() > kVocabulary && i == kSome) return;
    const std::string at = path + '/' + (value.is_object() ? key : "*");
    visit(at, Place{&value, value.is_object() ? key : "", i++});
    if (member.is_structured()) Walk(member, at, visit);
  }
}

// Groups the places that have the same path: the first, the last, and all.
std::vector<std::vector<Place>> Groups(Json& whole) {
  std::map<std::string, std::vector<Place>> columns;
  if (whole.is_structured()) {
    Walk(whole, "",
         [&](const std::string& path, const Place& place) { columns[path].push_back(place); });
  }
  std::vector<std::vector<Place>> groups;
  for (auto& [path, places] : columns) {
    groups.push_back({places.front()});
    if (places.size() == 1) continue;
    groups.push_back({places.back()});
    groups.push_back(std::move(places));
  }
  return groups;
}

}  // namespace

std::vector<std::string> ChangeEach(const std::string& input) {
  static const Json kValues = Json::parse(
      R"([null, true, 0, -1, 1, 3, 64, 0.5, 1e308, 4611686018427387904, "", "x",
          "a text of more than sixteen bytes", [], {}, [1, 2, 3]])");
  const JsonPart given = PartOf(input);
  std::vector<std::string> changed;
  if (given.json.is_discarded()) return changed;
  for (size_t i = 0;; ++i) {
    JsonPart part = given;
    const std::vector<std::vector<Place>> groups = Groups(part.json);
    if (i == groups.size()) return changed;
    for (const Json& value : kValues) {
      for (const Place& place : groups[i]) At(place, part.json) = value;
      changed.push_back(With(part, input));
    }
    if (!groups[i][0].parent->is_object()) continue;
    for (const Place& place : groups[i]) place.parent->erase(place.key);
    changed.push_back(With(part, input));
    for (const char* behind : {"x", kLong}) {
      for (const Place& place : groups[i]) (*place.parent)[place.key + behind] = Json();
      changed.push_back(With(part, input));
    }
  }
}

std::map<std::string, Json> MembersOf(const std::vector<std::string>& inputs) {
  std::map<std::string, Json> members;
  for (const std::string& input : inputs) {
    Json json = PartOf(input).json;
    if (!json.is_structured()) continue;
    Walk(json, "", [&](const std::string& path, const Place& place) {
      if (place.parent->is_object()) members.emplace(path, At(place, json));
    });
  }
  return members;
}

std::vector<std::string> AddEach(const std::string& input,
                                 const std::map<std::string, Json>& members) {
  static const Json kValues = Json::parse(R"([null, -1, 0.5, "x", [], {}])");
  JsonPart part = PartOf(input);
  std::vector<std::string> changed;
  if (!part.json.is_object()) return changed;
  std::map<std::string, Json*> objects = {{"", &part.json}};  // the first object of each path
  Walk(part.json, "", [&](const std::string& path, const Place& place) {
    Json& value = At(place, part.json);
    if (value.is_object()) objects.emplace(path, &value);
  });
  for (const auto& [path, example] : members) {
    const size_t slash = path.rfind('/');
    const auto object = objects.find(path.substr(0, slash));
    const std::string name = path.substr(slash + 1);
    if (object == objects.end() || object->second->contains(name)) continue;
    (*object->second)[name] = example;
    changed.push_back(With(part, input));
    for (const Json& value : kValues) {
      (*object->second)[name] = value;
      changed.push_back(With(part, input));
    }
    object->second->erase(name);
  }
  return changed;
}

std::vector<std::string> SpellEach(const std::string& input) {
  JsonPart part = PartOf(input);
  std::vector<Place> places;
  if (!part.json.is_discarded()) Collect(part.json, places);
  std::vector<std::string> changed;
  for (size_t i = 0; !places.empty() && i < JsonSpellings().size(); ++i) {
    At(places[0], part.json) = Spelling(i);
    changed.push_back(With(part, input));
  }
  return changed;
}

}  // namespace oscar::fuzz
