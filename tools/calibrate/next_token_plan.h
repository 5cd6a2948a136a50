// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates bits by their effect on the next token. The model runs over calibration text
// (calib/priced_text.h) to measure each option of the keys or values of one layer alone. Then it
// measures the resulting plans for the whole cache.
#pragma once

#include <cstddef>
#include <functional>

#include "calib/held_out.h"
#include "calib/job/job_directory.h"
#include "calib/priced_text.h"
#include "calib/run/calibrate.h"
#include "export/artifact/artifact_writer.h"
#include "export/validate/next_token_cost.h"
#include "tools/cli/command.h"

namespace oscar {

// Returns whether a run with these options runs the model again after its layers to allocate bits.
bool PlansByNextToken(const CalibrationInput& input);

// Checks --bits-by, the cost by which bits are allocated. Throws UsageError if this run does not
// measure that cost, or if no choice allocates bits.
void CheckBitPrice(const CalibrationInput& input);

// Returns a run of the calibration's model. Its text is set later (DoPass).
NextTokenRun RunOf(const CalibrationInput& input, CommandContext& context);

struct PassText {
  TokenTexts ids;
  TokenTexts counted;  // 0: the token does not count as a query; empty: all count
};
struct PassTexts {
  PassText priced;  // text of each trial, mostly text that was used for the fit
  PassText judged;  // held-out text for whole caches: up to a sixth of the calibration's tokens
};
// Selects the texts for measuring `trials` options and then whole caches. If no text is long enough
// to reach far beyond the windows, sets `windows` to none. Throws InputError if nothing is held
// out.
PassTexts TextsOf(const CalibrationInput& input, const HeldOutSplit& split, size_t trials,
                  CacheWindows* windows);

// Calls `work` with `text` as the text of `run`, and shows `what` as progress.
void DoPass(const char* what, const PassText& text, NextTokenRun& run, CommandContext& context,
            const std::function<void()>& work);

// Allocates the bits of the draft's choices. Throws Interrupted if stopped; the finished layers
// stay in the job.
void PlanByNextToken(const CalibrationInput& input, const HeldOutSplit& split,
                     const JobDirectory& job, ArtifactDraft& draft, CommandContext& context);

}  // namespace oscar
