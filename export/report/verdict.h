// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation in two sentences: whether the fit bought anything on this model, over a Hadamard
// rotation and over rotations that know nothing of their layer, and what a user will notice. The
// terminal, the page and the model card say the same.
#pragma once

#include <string>

#include "export/report/record.h"

namespace oscar {

struct Verdict {
  std::string fit;     // by KL of the next token, of attention where there was no text
  std::string notice;  // empty where there was no text
};

// "text" or "own_words", which the verdict rests on. `validation`: the member of a checked report.
std::string VerdictMember(const Record& validation);

// Plain text; names of arms in it are untrusted.
Verdict VerdictOf(const Record& validation);
Verdict VerdictOf(const Json& validation);

}  // namespace oscar
