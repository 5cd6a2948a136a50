// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --runtime: compares a serving runtime's real behaviour with the arm it should match.
#pragma once

#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

std::vector<std::string> RuntimeNames();  // the names that --runtime accepts

// Adds an arm for each variant of each runtime, one for its automatic choice if it has any, and the
// ideal arm that each should match.
void AddRuntimeArms(const std::vector<std::string>& runtimes, const Artifact& artifact,
                    std::vector<std::string>& arms);

// Adds "ideal" to every runtime's arm whose ideal was measured too. `validation`: the member of
// report.json.
void AddRuntimeLosses(const Artifact& artifact, Json& validation);

}  // namespace oscar
