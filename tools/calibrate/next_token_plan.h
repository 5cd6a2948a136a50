// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shares out bits by their worth to the next token. Passes of the model over text of the
// calibration (calib/priced_text.h) measure what each option of each side of a layer costs alone,
// and what the resulting plans cost as whole caches.
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

// Returns whether a run with these options does this once its layers are done.
bool PlansByNextToken(const CalibrationInput& input);

// Throws UsageError if bits are to be shared out by something that this run does not measure, or
// are not shared out at all.
void CheckBitPrice(const CalibrationInput& input);

// Returns passes of the calibration's model, without text yet.
NextTokenRun RunOf(const CalibrationInput& input, CommandContext& context);

struct PassText {
  TokenTexts ids;
  TokenTexts counted;  // 0 where the query of a token does not count; empty: all do
};
struct PassTexts {
  PassText priced;  // of `trials`, each of which runs on half of the layers: together over twice
                    // the calibration's tokens
  PassText judged;  // of whole caches: a sixth of the calibration's tokens, where as many are
                    // held out
};
// Throws InputError if nothing is held out. Sets `windows` to none if neither text reaches far
// beyond them.
PassTexts TextsOf(const CalibrationInput& input, const HeldOutSplit& split, size_t trials,
                  CacheWindows* windows);

// Does `work`, which runs `run` over `text`, under the progress line `what`.
void DoPass(const char* what, const PassText& text, NextTokenRun& run, CommandContext& context,
            const std::function<void()>& work);

// Decides the draft's headline. Throws Interrupted, with the layers kept.
void PlanByNextToken(const CalibrationInput& input, const HeldOutSplit& split,
                     const JobDirectory& job, ArtifactDraft& draft, CommandContext& context);

}  // namespace oscar
