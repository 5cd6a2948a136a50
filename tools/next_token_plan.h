// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits shared out by what they are worth to the next token: what each option of each side of a
// layer costs alone, the plans that follow, and what they cost as whole caches, by passes of the
// model over held-out text of the calibration.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/held_out.h"
#include "calib/job/job_directory.h"
#include "calib/run/calibrate.h"
#include "export/artifact/artifact_writer.h"
#include "export/validate/next_token_cost.h"
#include "tools/cli/command.h"

namespace oscar {

// Whether a run of these options is to do so, once its layers are done.
bool PlansByNextToken(const CalibrationInput& input);

// Throws UsageError where bits are asked to be shared out by what this run does not measure, or are
// not shared out at all.
void CheckBitPrice(const CalibrationInput& input);

// Tokens that passes are over. A trial runs on half of the layers: all of them together over twice
// the calibration's tokens.
int64_t TokensOfPass(const CalibrationInput& input, size_t trials);
int64_t NumTokens(const NextTokenRun& run);

// Decides the draft's headline. Throws Interrupted, with the layers kept.
void PlanByNextToken(const CalibrationInput& input, const HeldOutSplit& split,
                     const JobDirectory& job, ArtifactDraft& draft, CommandContext& context);

}  // namespace oscar
