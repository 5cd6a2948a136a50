// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that a run brings with it: somebody's rotations from a file, and every method of the
// table made from another artifact. Their names are the user's, so they mean something in
// their own report alone.
#pragma once

#include <memory>
#include <string>

#include "export/artifact/artifact_reader.h"
#include "export/formats/given_rotations.h"
#include "export/simulate/cache_method.h"

namespace oscar {

// Two bits behind those rotations, clipped at the options' ratios; `check` refuses a model whose
// layers, heads or dimensions they do not have.
std::shared_ptr<const CacheMethod> RotationMethod(const std::string& name,
                                                  GivenRotations rotations);

// "name:oscar_per_head" and every other one: that method with `artifact` in place of the run's.
GuestMethods MethodsOfArtifact(const std::string& name, std::shared_ptr<const Artifact> artifact);

}  // namespace oscar
