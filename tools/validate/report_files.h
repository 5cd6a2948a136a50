// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --write: exports the numbers of reports in the formats of other tools.
#pragma once

#include <filesystem>
#include <vector>

#include "export/report/comparison.h"  // NamedReport

namespace oscar {

// Writes a new directory:
//   numbers.csv                                 one row per model and arm
//   lm-eval/MODEL_ARM/results_DATE.json         one for every arm with next-token predictions
//   llama-perplexity/MODEL_ARM[.own_words].txt  one for each of these except the exact model
//   plots/MODEL/CHART.svg                       every chart of report.html
// Throws InputError for a file that is not a report or was not validated, and then writes nothing.
void WriteReportFiles(const std::vector<NamedReport>& reports,
                      const std::filesystem::path& directory);

}  // namespace oscar
