// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What is known about fields of config.json that no family reads: those that cannot change
// attention inputs or logits of a forward pass, with the reason, and those that can, with the
// values at which they do not; what transformers makes of fields of each family; and what becomes
// of a field that nobody knows. Trap: a field belongs in the first table only if no value of it
// matters.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

struct MathField {
  std::string_view name;
  std::string_view effect;        // what it does to the model
  std::string_view neutral_text;  // values without effect, as JSON texts separated by " | "; empty
                                  // ones never have one
};

// What becomes of a field that no table knows.
enum class UnknownConfig {
  kCheck,  // it passes unless its name speaks of the mathematics; whoever runs the model proves, by
           // the loss of a text, that the forward pass is right without it
  kRefuse,  // it is refused
  kIgnore,  // it passes
};

bool IsIrrelevantField(std::string_view name);
const MathField* FindMathField(std::string_view name);  // nullptr if not in the table
bool IsNeutral(const MathField& field, const Json& value);

// Why a field that nobody knows is refused, or "" if it passes.
std::string WhyUnknownRefused(std::string_view name, UnknownConfig rule);

// Whether the configuration class of that model type in transformers stores the field and its model
// never reads it. The pinned version: reference_fields.inc.
bool IsUnreadByReference(std::string_view model_type, std::string_view field);
// The defaults of that class, which a text_config may leave out: an object, empty if there is none.
Json ReferenceDefaults(std::string_view model_type);

// "; did you mean 'head_dim'?" if a field of the tables or of `also_known` is near, else "".
std::string NearestField(std::string_view name,
                         const std::set<std::string, std::less<>>& also_known);

}  // namespace oscar
