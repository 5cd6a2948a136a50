// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that a run brings with it: somebody's rotations from a file, and every method of the
// table made from another artifact. Their names are the user's, so they mean something in
// their own report alone.
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

// `method` under a name and a description of its own, which it keeps.
std::shared_ptr<const CacheMethod> NamedMethod(std::string name, std::string description,
                                               CacheMethod method);

// Two bits behind those rotations, clipped at the options' ratios; `available` refuses a model
// whose layers, heads or dimensions they do not have.
std::shared_ptr<const CacheMethod> RotationMethod(const std::string& name,
                                                  GivenRotations rotations);

// "any@2.5": what `any` gets at each budget of the artifact, but for the headline's own, which is
// `auto`.
GuestMethods BudgetMethods(const Artifact& artifact);
// The arm of each budget, by bits; empty where the artifact has no list of them.
std::vector<std::pair<double, std::string>> BudgetArms(const Artifact& artifact);
inline constexpr std::string_view kBudgetPrefix = "any@";  // of those methods' names

// "name:oscar_per_head" and every other one: that method with `artifact` in place of the run's.
GuestMethods MethodsOfArtifact(const std::string& name, std::shared_ptr<const Artifact> artifact);

}  // namespace oscar
