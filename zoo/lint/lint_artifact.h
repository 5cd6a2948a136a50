// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lints our own artifacts, which have data that upstream's files lack: every head's eigenvalues,
// token counts, measurements. An artifact inside a zoo is a folder of links, and its findings name
// the entry.
#pragma once

#include "zoo/lint/lint.h"
#include "zoo/lint/lint_measure.h"

namespace oscar {

// Limits beyond which lint reports that heads disagree: the factor by which the KL of the shared
// rotation exceeds that of per-head ones, or, if no KL was measured, the mean over layers of
// HeadAgreement.
inline constexpr double kMinHeadAgreement = 0.1;
inline constexpr double kMaxSharedKlFactor = 1.25;

// Findings name the artifact's directory.
void LintArtifact(const ArtifactFiles& files, const LintOptions& options, LintSink* sink);

}  // namespace oscar
