// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What is known about fields of config.json that no family reads: those that cannot change
// attention inputs or logits of a forward pass, with the reason, and those that can, with the
// values at which they do not. Trap: a field belongs in the first table only if no value of it
// matters.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

struct MathField {
  std::string_view name;
  std::string_view effect;  // what it does to the model
  std::string_view
      neutral_text;  // values without effect, as JSON texts separated by " | "; null always is one
};

bool IsIrrelevantField(std::string_view name);
const MathField* FindMathField(std::string_view name);  // nullptr if not in the table
bool IsNeutral(const MathField& field, const Json& value);

// "; did you mean 'head_dim'?" if a field of the tables or of `also_known` is near, else "".
std::string NearestField(std::string_view name,
                         const std::set<std::string, std::less<>>& also_known);

}  // namespace oscar
