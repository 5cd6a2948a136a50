// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation in a few sentences: whether the fit bought anything on this model, over a Hadamard
// rotation, OSCAR as published and rotations that know nothing of their layer, each by the paired
// difference on the same text; whether that holds on every domain of it; and what a user will
// notice. The terminal, the page and the model card say the same.
#pragma once

#include <string>

#include "export/report/record.h"

namespace oscar {

struct Verdict {
  std::string fit;       // by KL of the next token, of attention where there was no text
  std::string notice;    // empty where there was no text
  std::string domains;   // the worst one, and those that gains hold on; empty where there is one
  std::string remedy;    // after a gate that failed: what would pass (WhatWouldPass)
  std::string caution;   // where fewer than 1,000 rows see a quantized key
  std::string left_out;  // of a quick validation, and how to get it
};

// "text" or "own_words", which the verdict rests on. `validation`: the member of a checked report.
std::string VerdictMember(const Record& validation);

// Plain text; names of arms in it are untrusted.
Verdict VerdictOf(const Record& validation);
Verdict VerdictOf(const Json& validation);

}  // namespace oscar
