// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The format of report.json: its name, its version, and the check of a document against schema.md,
// which is the specification. A report is untrusted input even if we wrote it, because it may have
// been changed in a zoo, on a mirror or in an editor.
#pragma once

#include <string>
#include <string_view>

#include "capture/files/json_text.h"

namespace oscar {

inline constexpr std::string_view kReportSchema = "oscar-report";
// Version 1 lacks `validation` and spectra, version 2 lacks `ideal` and `by_length_depth`, and
// version 3 lacks `behind` and `by_domain`. All versions can be read.
inline constexpr int kReportVersion = 4;

// Throws InputError naming `what` and the JSON pointer of a member that is missing, unknown, of a
// wrong type, not finite or out of range, or in conflict with another. Conflicts include a reversed
// interval, a headline arm that is not among the arms, a matrix that does not fit its layers, and a
// gate whose verdict differs from its checks.
void CheckReport(const JsonElement& report, std::string_view what);
void CheckReport(const Json& report, std::string_view what);

// Lists every member that CheckReport knows, as in schema.md: its name, type, and whether it is
// optional, followed by its own members.
std::string ReportMembers();

}  // namespace oscar
