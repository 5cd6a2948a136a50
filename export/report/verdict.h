// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Summarizes a validation in a few sentences, the same on the terminal, the page and the model
// card. They say:
// - whether the fit gained anything on this model over a Hadamard rotation, OSCAR as published, and
//   rotations made without knowledge of their layer, each by the paired difference on the same
//   text;
// - whether that holds on every domain of the text;
// - what a user will notice.
#pragma once

#include <string>

#include "export/report/record.h"

namespace oscar {

struct Verdict {
  std::string fit;       // next-token KL compared with its rivals'; attention-KL without a text
  std::string notice;    // what a user will notice; empty without a text
  std::string domains;   // the worst domain, and domains with gains; empty if there is only one
  std::string remedy;    // for a failed gate: what would pass (WhatWouldPass)
  std::string caution;   // if fewer than 1,000 rows see a quantized key
  std::string left_out;  // what a quick validation left out, and how to get it
};

// Returns the member of arms that decides the verdict: "text" or "own_words", which the model
// generated. `validation`: that of a report that passed CheckReport.
std::string VerdictMember(const Record& validation);

// Returns plain text. Names of arms in it are untrusted.
Verdict VerdictOf(const Record& validation);
Verdict VerdictOf(const Json& validation);

}  // namespace oscar
