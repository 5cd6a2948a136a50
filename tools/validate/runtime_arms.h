// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --runtime: what a serving runtime really does, beside the arm that it is meant to be.
#pragma once

#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

std::vector<std::string> RuntimeNames();  // as --runtime takes them

// Adds all variants of each runtime, that of its automatic choice where there is one, and the arm
// that each is meant to be.
void AddRuntimeArms(const std::vector<std::string>& runtimes, const Artifact& artifact,
                    std::vector<std::string>& arms);

// The member "ideal" of every arm that is a runtime and whose ideal was measured, too.
// `validation`: the member of report.json.
void AddRuntimeLosses(const Artifact& artifact, Json& validation);

}  // namespace oscar
