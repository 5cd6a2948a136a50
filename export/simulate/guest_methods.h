// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that a run adds to the table: rotations from a file, and every method of the table made
// from another artifact. The user chooses their names, so a name means something only in that
// user's own report.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/artifact/artifact_reader.h"
#include "export/formats/given_rotations.h"
#include "export/simulate/cache_method.h"

namespace oscar {

// `method` under another name and description, which the result stores.
std::shared_ptr<const CacheMethod> NamedMethod(std::string name, std::string description,
                                               CacheMethod method);

// INT2 after the given rotations, clipped at the options' ratios. `available` refuses a model whose
// layers, heads or dimensions the rotations do not have.
std::shared_ptr<const CacheMethod> RotationMethod(const std::string& name,
                                                  GivenRotations rotations);

// "any@2.5": the choice for the runtime `any` at each budget of the artifact, except the headline's
// budget, which is `auto`.
GuestMethods BudgetMethods(const Artifact& artifact);
// The arm of each budget, by bits; empty if the artifact has no budgets.
std::vector<std::pair<double, std::string>> BudgetArms(const Artifact& artifact);
inline constexpr std::string_view kBudgetPrefix = "any@";  // of those methods' names

// "name:oscar_per_head" and so on: every method of the table with `artifact` in place of the run's.
GuestMethods MethodsOfArtifact(const std::string& name, std::shared_ptr<const Artifact> artifact);

}  // namespace oscar
