// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The charts of report.html as standalone SVG documents with a title and a white background. Their
// colours are explicit light ones, since Inkscape and librsvg do not support CSS variables.
#pragma once

#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

struct ChartFile {
  std::string name;  // "context-text.svg"; unique
  std::string svg;
};

// Returns the charts in the order of the page. Throws like ReportPage.
std::vector<ChartFile> ChartFiles(const Json& report);

}  // namespace oscar
