// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --runtime: simulates a serving runtime's cache as it really behaves, and compares it
// with the ideal arm that it should match.
#pragma once

#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

std::vector<std::string> RuntimeNames();  // the names that --runtime accepts

// Adds arms for each of the runtimes: one per variant of the runtime, one for its automatic choice
// if the artifact has any, and the ideal arm of each.
void AddRuntimeArms(const std::vector<std::string>& runtimes, const Artifact& artifact,
                    std::vector<std::string>& arms);

// Adds the loss against the ideal ("ideal") to each runtime's arm, if its ideal arm was measured
// too. `validation`: the member of report.json.
void AddRuntimeLosses(const Artifact& artifact, Json& validation);

}  // namespace oscar
