// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a sample report: layers with spectra and clip curves, their summary, and the kernels of
// a validation.
#pragma once

#include "tests/export/report/sample_report.h"

namespace oscar {

// Returns a number in [-1, 1) that looks random but depends only on its arguments.
double SampleWobble(int a, int b = 0, int c = 0);

Json SampleLayerReport(const SampleReportOptions& options, int layer);
Json SampleSummary(const SampleReportOptions& options);
Json SampleServingChoice();
Json SampleKernels(const SampleReportOptions& options);  // for a validation with --kernels
void AddRareMembers(Json& report);                       // adds members that few reports have

}  // namespace oscar
