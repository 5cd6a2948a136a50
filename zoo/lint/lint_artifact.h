// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lints our own artifacts. They have data that upstream's files lack: every head's eigenvalues,
// token counts and measurements. Findings about an artifact in a zoo name its entry.
#pragma once

#include "zoo/lint/lint.h"
#include "zoo/lint/lint_measure.h"

namespace oscar {

// Limits for the finding that heads disagree. If KLs were measured, the KL of the shared rotation
// may be at most kMaxSharedKlFactor times that of the per-head ones. Otherwise the mean of
// HeadAgreement over layers must be at least kMinHeadAgreement.
inline constexpr double kMinHeadAgreement = 0.1;
inline constexpr double kMaxSharedKlFactor = 1.25;

// Findings name files.directory.
void LintArtifact(const ArtifactFiles& files, const LintOptions& options, LintSink* sink);

}  // namespace oscar
