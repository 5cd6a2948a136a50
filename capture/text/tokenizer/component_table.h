// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Maps components of tokenizer.json ({"type": ..., fields}) to steps of the pipeline, by a table
// with one row per type. An unknown type or field is refused by name before any text is encoded,
// because ignoring it could silently give wrong ids.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar {

// Steps run in order. A Sequence in the file is flattened into its members.
template <class Step>
using Chain = std::vector<std::unique_ptr<const Step>>;

// A malicious file could list a million patterns; real files have fewer than ten steps.
inline constexpr size_t kMaxChainSteps = 64;

template <class Step>
struct ComponentKind {
  std::string_view type;
  std::vector<std::string_view> fields;  // allowed in addition to "type"
  // `where` is the file and the path inside it, for errors: "tokenizer.json: pre_tokenizer".
  void (*append)(const Json& component, const std::string& where, Chain<Step>& chain);
};

// Refuses members of `object` other than "type" and those in `fields`.
inline void CheckFields(const Json& object, std::span<const std::string_view> fields,
                        const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (key == "type" || std::find(fields.begin(), fields.end(), key) != fields.end()) continue;
    throw InputError(fmt::format("{}: field \"{}\" is not supported (known here: {})", where, key,
                                 fmt::join(fields, ", ")));
  }
}

// Appends the steps of `component`; null appends nothing.
template <class Step>
void AppendComponent(std::span<const ComponentKind<Step>> table, const Json& component,
                     const std::string& where, Chain<Step>& chain) {
  if (component.is_null()) return;
  if (!component.is_object()) {
    throw InputError(fmt::format("{}: expected an object with a \"type\" or null, found {}", where,
                                 component.type_name()));
  }
  const std::string type = JsonString(component, "type", where);
  std::vector<std::string_view> known;
  for (const ComponentKind<Step>& kind : table) {
    known.push_back(kind.type);
    if (kind.type != type) continue;
    const std::string inner = where + "." + type;
    CheckFields(component, kind.fields, inner);
    kind.append(component, inner, chain);
    if (chain.size() > kMaxChainSteps) {
      throw InputError(fmt::format("{}: has more than {} steps", where, kMaxChainSteps));
    }
    return;
  }
  throw InputError(
      fmt::format("{}: type \"{}\" is not supported; supported: {}. Give rows with \"input_ids\" "
                  "to calibrate without this tokenizer",
                  where, type, fmt::join(known, ", ")));
}

// Appends a Sequence: each element of the array member `field`, by the same table.
template <class Step>
void AppendSequence(std::span<const ComponentKind<Step>> table, const Json& component,
                    const char* field, const std::string& where, Chain<Step>& chain) {
  const Json& members = JsonMember(component, field, where);
  if (!members.is_array()) {
    throw InputError(
        fmt::format("{}: \"{}\" must be an array, found {}", where, field, members.type_name()));
  }
  for (size_t i = 0; i < members.size(); ++i) {
    AppendComponent(table, members[i], fmt::format("{}[{}]", where, i), chain);
  }
}

// Returns the types in a table, for documentation.
template <class Step>
std::vector<std::string_view> TypesOf(std::span<const ComponentKind<Step>> table) {
  std::vector<std::string_view> types;
  for (const ComponentKind<Step>& kind : table) types.push_back(kind.type);
  return types;
}

}  // namespace oscar
