// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes a model directory and everything that prevents its calibration. All other commands stop
// at the first problem. The doctor repairs a copy of config.json and continues. So it describes the
// model only as far as it is understood, and its spec must not be used to calibrate.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/input/model_input.h"

namespace oscar {

using Fact = std::pair<std::string, std::string>;  // name and text; the text may have several lines

struct Diagnosis {
  ModelLocation location;
  std::optional<ModelSpec> spec;  // as far as it is understood; absent if not at all
  bool has_weights = false;       // all weights exist and can be read
  bool quantized = false;
  std::string
      attention_codes;  // storage of its projections according to the configuration; "": plain
  bool has_tokenizer = false;
  std::vector<Fact> facts;
  std::vector<std::string> reasons;  // why it cannot be calibrated
  std::vector<std::string> missing;  // required or recommended things that are missing
  bool unknown_fields_only = false;  // all reasons are fields that no table knows

  bool supported() const { return reasons.empty(); }
};

// Never throws InputError; problems become reasons.
Diagnosis DiagnoseModel(const ModelArguments& model, const ChatArguments& chat);

// Returns the facts that config.json states.
std::vector<Fact> SpecFacts(const ModelSpec& spec);
// Returns what an artifact of the model can be used for, and what is refused.
std::vector<Fact> UseFacts(const ModelSpec& spec, const std::string& attention_codes);
// Diagnoses tokenizer and chat template; it is in text_doctor.cc.
void DiagnoseText(const ModelArguments& model, const ChatArguments& chat, Diagnosis& diagnosis);

}  // namespace oscar
