// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An artifact as people want to see it: oscar-export ARTIFACT --inspect without --json.
#pragma once

#include <string>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// Whose it is, what it was fitted to, what it holds, how it is served and what was measured: a line
// each.
std::string ArtifactText(const Artifact& artifact);
std::string ImportedText(const Artifact& artifact);  // of one that was imported

}  // namespace oscar
