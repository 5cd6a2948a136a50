// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lint of our own artifacts, which have data that upstream's files lack: every head's eigenvalues,
// token counts, measurements. An artifact inside a zoo is a folder of links; its findings name the
// entry.
#pragma once

#include "zoo/lint/lint.h"
#include "zoo/lint/lint_measure.h"

namespace oscar {

// Limits for reporting that heads disagree: the report's KL of the shared rotation exceeds that of
// the per-head ones by a factor, or, if nothing was measured, the mean over layers of HeadAgreement
// is low.
inline constexpr double kMinHeadAgreement = 0.1;
inline constexpr double kMaxSharedKlFactor = 1.25;

// Findings name the artifact's directory.
void LintArtifact(const ArtifactFiles& files, const LintOptions& options, LintSink* sink);

}  // namespace oscar
