// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that a run adds to the table: rotations from a file, choices at other bit budgets, and
// every method of the table with another artifact. Users name their files and artifacts, so these
// names mean something only in their own reports.
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

// Returns a copy of `method` that owns its new name and description.
std::shared_ptr<const CacheMethod> NamedMethod(std::string name, std::string description,
                                               CacheMethod method);

// Makes a method that stores INT2 after the given rotations, clipped at the options' ratios. Its
// `available` throws InputError if the rotations do not fit the model's layers, heads or
// dimensions.
std::shared_ptr<const CacheMethod> RotationMethod(const std::string& name,
                                                  GivenRotations rotations);

// Returns methods like "any@2.5", one for each budget (bits per element) of the artifact: its
// choice for the runtime `any`. The headline choice is omitted, because its method is "auto".
GuestMethods BudgetMethods(const Artifact& artifact);
// Returns each budget, in bits, with its arm; empty if the artifact has no budgets.
std::vector<std::pair<double, std::string>> BudgetArms(const Artifact& artifact);
inline constexpr std::string_view kBudgetPrefix = "any@";  // prefix of those methods' names

// Returns every method of the table, applied to `artifact` instead of the run's, under names like
// "name:oscar_per_head".
GuestMethods MethodsOfArtifact(const std::string& name, std::shared_ptr<const Artifact> artifact);

}  // namespace oscar
