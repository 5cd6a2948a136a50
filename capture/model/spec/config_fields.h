// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of config.json fields that no family reads. The first table has fields that cannot change
// attention inputs or logits of a forward pass, with the reason. The second has fields that can,
// with the values that have no effect. The third says how transformers treats the fields of each
// family. WhyUnknownRefused has the rule for all other fields. Trap: a field only belongs in the
// first table if none of its values matters.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

struct MathField {
  std::string_view name;
  std::string_view effect;        // its effect on the model
  std::string_view neutral_text;  // JSON texts of values without effect, separated by " | "; empty:
                                  // every value has an effect
};

// How to treat a field that no table has.
enum class UnknownConfig {
  kCheck,   // accepted unless its name suggests that it changes the mathematics; the loss of a text
            // then shows users whether the forward pass is right
  kRefuse,  // refused
  kIgnore,  // accepted
};

bool IsIrrelevantField(std::string_view name);
const MathField* FindMathField(std::string_view name);  // nullptr if not in the table
bool IsNeutral(const MathField& field, const Json& value);

// Returns the reason for refusing an unknown field, or "" if it is accepted.
std::string WhyUnknownRefused(std::string_view name, UnknownConfig rule);

// Whether transformers' config class for this model type stores the field although the model never
// reads it. reference_fields.inc names the version of transformers.
bool IsUnreadByReference(std::string_view model_type, std::string_view field);
// Returns the defaults of that class for fields that a text_config may omit: an object, empty if
// there are none.
Json ReferenceDefaults(std::string_view model_type);

// Returns "; did you mean 'head_dim'?" if the tables or `also_known` have a similar field, or "".
std::string NearestField(std::string_view name,
                         const std::set<std::string, std::less<>>& also_known);

}  // namespace oscar
