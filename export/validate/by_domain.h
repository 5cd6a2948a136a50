// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arms of a report side by side on the same pieces of text: how far each is behind the headline, as
// paired differences, and what each does on every domain of the text. Arms may have been measured
// by several processes, so each leaves the sums of its pieces (kPieces of piece_sums.h), from which
// all of this is made when they are together.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// Where a validation keeps the domain of each text until then: a list of names, [texts]. Missing:
// all are of one.
inline constexpr const char* kTextDomains = "text_domains";

// Adds "behind" and "by_domain" of export/report/schema.md to the arms of `validation`, and takes
// kPieces and kTextDomains away.
void FinishArms(Json& validation);

}  // namespace oscar
