// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// report.json as a format: its name, its version and the check of a document against schema.md,
// which is the specification. A report is an input, however often we wrote it ourselves: it
// comes back from a zoo, from a mirror, from an editor.
#pragma once

#include <string>
#include <string_view>

#include "capture/files/json_text.h"

namespace oscar {

inline constexpr std::string_view kReportSchema = "oscar-report";
// Version 1 had no `validation` and no spectra; 2 no `ideal` and no `by_length_depth`; 3 no
// `behind` and no `by_domain`. All are read.
inline constexpr int kReportVersion = 4;

// Throws InputError naming `what` and the member (as a JSON pointer) that is missing, unknown, of a
// wrong type, not finite, out of its range, or at odds with another: an interval upside down, a
// headline arm that is not among the arms, a matrix that does not fit its layers, a gate whose
// verdict is not that of its checks.
void CheckReport(const JsonElement& report, std::string_view what);
void CheckReport(const Json& report, std::string_view what);

// Every member as CheckReport knows it, the list that schema.md holds: name, whether it may be
// missing, type; below them their own members.
std::string ReportMembers();

}  // namespace oscar
