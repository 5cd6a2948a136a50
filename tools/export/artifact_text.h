// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes an artifact as text: oscar-export ARTIFACT --inspect without --json.
#pragma once

#include <string>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// Describes the model, the calibration data, the content, the serving settings and the measurements
// of an artifact, with a line for each fact.
std::string ArtifactText(const Artifact& artifact);
std::string ImportedText(const Artifact& artifact);  // for an imported artifact

}  // namespace oscar
