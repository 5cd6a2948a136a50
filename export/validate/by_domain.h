// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a report's arms on equal pieces of text: each arm's paired differences from the headline
// arm, and its results on each domain of the text. Several processes may have measured the arms.
// Each arm therefore stores the sums of its pieces (kPieces in piece_sums.h), and the comparison is
// made after the reports are merged.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// The member that stores the domain of each text, as a list of names, until FinishArms removes it.
// If it is missing, all texts are of one domain.
inline constexpr const char* kTextDomains = "text_domains";

// Adds "behind" and "by_domain" (export/report/schema.md) to the arms of `validation`, and removes
// kPieces and kTextDomains.
void FinishArms(Json& validation);

}  // namespace oscar
