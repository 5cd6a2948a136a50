// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The input of a validation: the model with its texts and needles, or a dump. Also checks that the
// text is held out. Rotations must be judged on text to which they were not fitted, so an overlap
// with the calibration data is an error.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "capture/text/data/overlap.h"
#include "export/artifact/artifact_reader.h"
#include "export/evaluate/needle.h"
#include "export/validate/arm.h"
#include "export/validate/token_errors.h"
#include "tools/input/model_input.h"
#include "tools/validate/validate_options.h"

namespace oscar {

struct ValidationInput {
  ModelInput model;
  std::vector<NeedleSample> needles, tool_calls;
  OverlapResult overlap;
  std::vector<Arm> arms;
  std::optional<DataSet> method_data;  // for arms that are fitted to text
  Json identity;                       // digest of config.json and a weight sample, as in manifests
  bool same_model = true;              // the artifact was fitted to this model
};

// Returns whether the recall task over text that the model wrote is requested. OpenValidationInput
// makes only the samples of the other tasks.
bool WantsPassages(const ValidateOptions& options);

// Opens the model, the text and the recall samples. Throws InputError for another model than the
// artifact's (unless allowed), and for text to which the rotations or a compared method were
// fitted.
ValidationInput OpenValidationInput(const ValidateOptions& options, const Artifact& artifact,
                                    Log& log);

// Sets the windows and the quantization group size to the artifact's recommendation where the
// options do not give them.
void TakeServing(const Artifact& artifact, ValidateOptions& options);

// Finds the overlap between `data` and the text to which the artifact was fitted.
OverlapResult OverlapOf(const Artifact& artifact, const DataSet& data);

// Return the members "model" and "data" of the report's "validation".
Json ValidationModelJson(const ValidationInput& input);
Json ValidationDataJson(const DataSet& data, const OverlapResult& overlap);

// Adds to `data` the numbers of words and UTF-8 bytes of the scored tokens, from which perplexities
// per word and per byte are computed. Words are separated by white space; special tokens do not
// count. Does nothing without a tokenizer.
void AddScoredSize(std::span<const ScoredToken> tokens, const Tokenizer* tokenizer, Json& data);

}  // namespace oscar
