// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A recorded validation held against one that was made again: what digests cannot prove. Whoever
// edits a report can seal it anew, but not make the model agree. Measuring itself is the caller's
// (it needs the model and LibTorch; this folder does not).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// Runs oscar-validate on the artifact with this configuration and returns the report.
using MeasureFunction =
    std::function<Json(const std::filesystem::path& artifact, const Json& configuration)>;

// The configuration by which a recorded validation can be made again: its own, with every arm,
// window and type by name, without gate and kernels. Throws InputError naming `what` if the report
// does not say.
Json RecordedConfiguration(const Json& validation, std::string_view what);

// What differs between two validations, a line each; empty if nothing does. Made by the same
// program on the same machine every number of every arm must agree to 1e-6 of it. Elsewhere
// arithmetic rounds otherwise: then the numbers that a gate may name must agree to 5 % (of a KL, an
// error, or what a ratio is above 1) and fractions to 0.05.
std::vector<std::string> CompareValidations(const Json& recorded, const Json& again);

}  // namespace oscar
