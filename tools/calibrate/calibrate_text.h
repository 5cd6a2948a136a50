// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts that oscar-calibrate prints: about each finished layer, and about the artifact at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calib/run/calibrate.h"
#include "tools/calibrate/calibrate_options.h"

namespace oscar {

std::string LayerLine(const LayerProgress& layer);
Json LayerEvent(const LayerProgress& layer, const Json& report);  // `report`: LayerReport

// Returns how tokens were spread over the experts of a layer.
std::string ExpertsLine(const LayerSpec& layer, const std::vector<int64_t>& tokens);

// Returns a table with the result for each runtime, best first. If `layers` is set or there are no
// choices, also returns the measurements of each layer.
std::string CalibrationTables(const Json& report, bool layers);

// Returns command lines that validate, export and publish the artifact, best runtime first.
std::string NextCommands(const Json& report, const std::filesystem::path& artifact,
                         const CalibrateOptions& options);

}  // namespace oscar
