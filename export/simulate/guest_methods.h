// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that a run adds to the table: rotations from a file, and every method of the table with
// another artifact. The user chooses their names, so a name means something only in that user's
// reports.
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

// Returns `method` under another name and description, which the result stores.
std::shared_ptr<const CacheMethod> NamedMethod(std::string name, std::string description,
                                               CacheMethod method);

// Makes a method that stores INT2 after the given rotations, clipped at the options' ratios.
// `available` throws for a model whose layers, heads or dimensions the rotations lack.
std::shared_ptr<const CacheMethod> RotationMethod(const std::string& name,
                                                  GivenRotations rotations);

// Methods like "any@2.5": the choice for the runtime `any` at each budget of the artifact. The
// headline's budget is `auto` instead.
GuestMethods BudgetMethods(const Artifact& artifact);
// Returns the arm for each budget, by bits; empty if the artifact has no budgets.
std::vector<std::pair<double, std::string>> BudgetArms(const Artifact& artifact);
inline constexpr std::string_view kBudgetPrefix = "any@";  // prefix of those methods' names

// Returns every method of the table, with `artifact` instead of the run's, under names like
// "name:oscar_per_head".
GuestMethods MethodsOfArtifact(const std::string& name, std::shared_ptr<const Artifact> artifact);

}  // namespace oscar
