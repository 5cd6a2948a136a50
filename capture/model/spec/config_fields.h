// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Knowledge about fields of config.json that no family reads: those that cannot change
// attention inputs or logits of a forward pass, with the reason; those that can, with the
// values that have no effect; how transformers treats fields of each family; and the rule
// for unknown fields. Trap: a field belongs in the first table only if no value of it
// matters.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

struct MathField {
  std::string_view name;
  std::string_view effect;        // its effect on the model
  std::string_view neutral_text;  // values without effect, as JSON texts separated by " | "; empty:
                                  // every value has an effect
};

// How a field that no table knows is treated.
enum class UnknownConfig {
  kCheck,   // it passes unless its name suggests the mathematics; users of the model then prove, by
            // the loss of a text, that the forward pass is right without it
  kRefuse,  // it is refused
  kIgnore,  // it passes
};

bool IsIrrelevantField(std::string_view name);
const MathField* FindMathField(std::string_view name);  // nullptr if not in the table
bool IsNeutral(const MathField& field, const Json& value);

// The reason for refusing an unknown field, or "" if it passes.
std::string WhyUnknownRefused(std::string_view name, UnknownConfig rule);

// Whether the configuration class of that model type in transformers stores the field but its model
// never reads it. The pinned version: reference_fields.inc.
bool IsUnreadByReference(std::string_view model_type, std::string_view field);
// The defaults of that class, which a text_config may omit: an object, empty if there are none.
Json ReferenceDefaults(std::string_view model_type);

// "; did you mean 'head_dim'?" if a field of the tables or of `also_known` is similar, else "".
std::string NearestField(std::string_view name,
                         const std::set<std::string, std::less<>>& also_known);

}  // namespace oscar
