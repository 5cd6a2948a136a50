// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes artifacts whose automatic choices come from given recipes, without a search.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "calib/consumers.h"
#include "tests/calib/choose/sample_choice.h"

namespace oscar {

// Writes an artifact with one layer per recipe (ids 0, 1, ...). `moments(i)` returns the moments of
// layer i.
void WriteChosenArtifact(const std::filesystem::path& path,
                         const std::vector<SampleRecipe>& recipes, const AutoOptions& options,
                         const std::function<LayerMoments(int)>& moments);
// Uses SampleMoments: 2 KV heads, keys of dimension 8 and values of dimension 4.
void WriteChosenArtifact(const std::filesystem::path& path,
                         const std::vector<SampleRecipe>& recipes, const AutoOptions& options);

// Returns the value of --bits that leaves `code_bits` bits per element for codes, after metadata.
double StoredBits(const std::vector<SampleRecipe>& recipes, double code_bits);

}  // namespace oscar
