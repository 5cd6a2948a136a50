// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares arms of a report on the same pieces of text: each arm's paired differences from the
// headline, and its results on every domain of the text. Several processes may have measured the
// arms, so each stores the sums of its pieces (kPieces of piece_sums.h). All this is computed after
// they are merged.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// The member in which a validation stores the domain of each text until FinishArms: a list of
// names, [texts]. If it is missing, all texts are of one domain.
inline constexpr const char* kTextDomains = "text_domains";

// Adds "behind" and "by_domain" of export/report/schema.md to the arms of `validation`, and removes
// kPieces and kTextDomains.
void FinishArms(Json& validation);

}  // namespace oscar
