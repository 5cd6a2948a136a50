// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Artifacts with automatic choices that nothing searched for.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "calib/consumers.h"
#include "tests/calib/choose/sample_choice.h"

namespace oscar {

// A layer for each recipe, of ids 0, 1, ...; `moments(i)` of layer i.
void WriteChosenArtifact(const std::filesystem::path& path,
                         const std::vector<SampleRecipe>& recipes, const AutoOptions& options,
                         const std::function<LayerMoments(int)>& moments);
// Uses SampleMoments: 2 KV heads of dimensions 8 and 4.
void WriteChosenArtifact(const std::filesystem::path& path,
                         const std::vector<SampleRecipe>& recipes, const AutoOptions& options);

// --bits for so many bits of codes per element of those layers.
double StoredBits(const std::vector<SampleRecipe>& recipes, double code_bits);

}  // namespace oscar
