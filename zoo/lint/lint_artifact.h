// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lint of our own artifacts, which carry what upstream's files lack: every head's eigenvalues, the
// token counts, the measurements. An artifact inside a zoo lies in a folder of links; its
// findings name the entry.
#pragma once

#include "zoo/lint/lint.h"
#include "zoo/lint/lint_measure.h"

namespace oscar {

// Heads are said to disagree where the report's own KL of the shared rotation is above that of the
// per-head ones by a factor, or where nothing was measured and the mean over layers of
// HeadAgreement is low.
inline constexpr double kMinHeadAgreement = 0.1;
inline constexpr double kMaxSharedKlFactor = 1.25;

// Findings name its directory.
void LintArtifact(const ArtifactFiles& files, const LintOptions& options, LintSink* sink);

}  // namespace oscar
