// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Distributes bits by their effect on the next token. Runs of the model over calibration text
// (calib/priced_text.h) measure the cost of each option on each single side of a layer, then the
// cost of the resulting plans as whole caches.
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

// Returns whether a run with these options plans bits by next-token cost after its layers.
bool PlansByNextToken(const CalibrationInput& input);

// Throws UsageError if the price of bits is something that this run does not measure, or if a price
// is given but bits are not shared out.
void CheckBitPrice(const CalibrationInput& input);

// Returns a run of the calibration's model over text that is set later.
NextTokenRun RunOf(const CalibrationInput& input, CommandContext& context);

struct PassText {
  TokenTexts ids;
  TokenTexts counted;  // 0 for tokens that are not counted as queries; empty: all count
};
struct PassTexts {
  PassText priced;  // for the trials, each of which runs half of the layers; in total twice the
                    // calibration's tokens
  PassText judged;  // for whole caches: up to a sixth of the calibration's tokens, as far as they
                    // are held out
};
// Throws InputError if nothing is held out. Sets `windows` to none if no text reaches far beyond
// them.
PassTexts TextsOf(const CalibrationInput& input, const HeldOutSplit& split, size_t trials,
                  CacheWindows* windows);

// Calls `work`, which uses `run` over `text`, and shows `what` as progress.
void DoPass(const char* what, const PassText& text, NextTokenRun& run, CommandContext& context,
            const std::function<void()>& work);

// Decides the bits of the draft's headline. Throws Interrupted; the job keeps the layers.
void PlanByNextToken(const CalibrationInput& input, const HeldOutSplit& split,
                     const JobDirectory& job, ArtifactDraft& draft, CommandContext& context);

}  // namespace oscar
