// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What oscar-calibrate says of layers as they come, and of the artifact at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calib/run/calibrate.h"
#include "tools/calibrate/calibrate_options.h"

namespace oscar {

std::string LayerLine(const LayerProgress& layer);
Json LayerEvent(const LayerProgress& layer, const Json& report);  // for logs; `report`: LayerReport

// How tokens were spread over the experts of a layer.
std::string ExpertsLine(const LayerSpec& layer, const std::vector<int64_t>& tokens);

// What each runtime gets, best first, and where `layers` or there are no choices, what was measured
// of each layer.
std::string CalibrationTables(const Json& report, bool layers);

// Command lines that validate, export and publish the artifact, best runtime first.
std::string NextCommands(const Json& report, const std::filesystem::path& artifact,
                         const CalibrateOptions& options);

}  // namespace oscar
