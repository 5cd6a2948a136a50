// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds up the moments of several artifacts of one model and fits rotations to the sum. A single
// artifact is refitted with other options.
#pragma once

#include <filesystem>
#include <vector>

#include "calib/options.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Writes an artifact at `output` and returns its report.
//
// If `options` ask for automatic choices, takes those of the artifact with the most tokens (among
// those that have choices) and fits them again (merged_choices.h). The report's
// `calibration.choices` names that artifact and lists what could not be reproduced.
//
// Throws InputError if the artifacts have different models or geometries, or if two were calibrated
// on the same data. The value target `diagonal` allows only one artifact, because its weights come
// from each run's own query covariance.
Json MergeArtifacts(const std::vector<std::filesystem::path>& artifacts,
                    const CalibrationOptions& options, const Json& program,
                    const std::filesystem::path& output);

}  // namespace oscar
