// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes report.html, a page without scripts and network access, which is legible in light and dark
// mode, on a phone and in print. It depends only on report.json: the same JSON gives the same
// bytes.
#pragma once

#include <string>
#include <vector>

#include "capture/files/json_text.h"
#include "export/report/page_shell.h"

namespace oscar {

// Throws InputError if `report` violates report_schema.h. Numbers are printed from the record and
// never recomputed. If a chart draws a product of two of them, its caption says so.
std::string ReportPage(const Json& report);

// Returns the same sections for use on another page. Throws like ReportPage.
std::vector<PageSection> ReportSections(const JsonElement& report);

}  // namespace oscar
