// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the structs of fields.h from a document. Reading is strict: InputError names a member that
// is missing, unknown, of another type or out of range. If members of a struct must agree, the
// struct has a function Verify(spot, value), which is called after reading.
#pragma once

#include <span>

#include "capture/files/json_text.h"
#include "export/measures/fields.h"

namespace oscar::measures {

// A value in the document, and its place.
struct Spot {
  JsonElement value;
  std::string_view what;         // the document, for messages
  const Spot* holder = nullptr;  // the enclosing object or list, which must outlive it
  std::string_view key = {};     // key in an object
  size_t index = 0;              // index in a list

  std::string pointer() const;  // RFC 6901
  // Throws InputError that names this place. `below` extends the JSON pointer.
  [[noreturn]] void Refuse(const std::string& why, std::string_view below = {}) const;
  [[noreturn]] void Expected(std::string_view expected) const;

  void ExpectObject() const;
  JsonElements Elements() const;
  void RefuseUnknown(std::span<const std::string_view> known) const;
};

// Returns one part of a JSON pointer, with ~ and / escaped as in RFC 6901.
std::string PointerToken(std::string_view key);

void Read(const Spot& spot, double& into);
void Read(const Spot& spot, NonNegative& into);
void Read(const Spot& spot, Fraction& into);
void Read(const Spot& spot, int64_t& into);
void Read(const Spot& spot, bool& into);
void Read(const Spot& spot, std::string& into);
void Read(const Spot& spot, Interval& into);
void Read(const Spot& spot, AnyObject& into);

template <typename T>
void Read(const Spot& spot, std::optional<T>& into) {
  Read(spot, into.emplace());
}

template <typename T>
void Read(const Spot& spot, std::vector<T>& into) {
  for (const JsonElement element : spot.Elements()) {
    const Spot at{element, spot.what, &spot, {}, into.size()};
    Read(at, into.emplace_back());
  }
}

template <typename T>
void Read(const Spot& spot, std::map<std::string, T>& into) {
  spot.ExpectObject();
  for (const auto& [key, value] : MembersOf(spot.value))
    Read(Spot{value, spot.what, &spot, key}, into[std::string(key)]);
}

template <HasFields T>
void Read(const Spot& spot, T& into) {
  spot.ExpectObject();
  std::vector<std::string_view> names;
  ForEachField<T>([&](std::string_view name, auto pointer) {
    names.push_back(name);
    if (const auto found = FindMember(spot.value, name)) {
      Read(Spot{found->value, spot.what, &spot, found->key}, into.*pointer);
    } else if (!kIsOptional<std::remove_cvref_t<decltype(into.*pointer)>>) {
      spot.Refuse("member \"" + std::string(name) + "\" is missing");
    }
  });
  if constexpr (!requires { T::kOpen; }) spot.RefuseUnknown(names);
  if constexpr (requires { Verify(spot, into); }) Verify(spot, into);
}

}  // namespace oscar::measures
