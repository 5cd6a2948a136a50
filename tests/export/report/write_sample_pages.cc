// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes every sample report and its page, NAME.json and NAME.html, into a directory: what the
// Chromium test looks at, and what a person opens to see the page.
#include <filesystem>
#include <iostream>
#include <utility>

#include "capture/files/atomic_file.h"
#include "export/report/comparison.h"
#include "export/report/report_page.h"
#include "tests/export/report/sample_report.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY\n";
    return 2;
  }
  const fs::path directory = argv[1];
  fs::create_directories(directory);
  const std::pair<const char*, oscar::SampleReportOptions> samples[] = {
      {"validated", {}},
      {"failed", {.gate_passes = false, .kernels_pass = false}},
      {"no-gate", {.gate = false}},
      {"dump", {.end_to_end = false, .gate_passes = false}},
      {"calibrated", {.validation = false}},
      {"nothing-held-out", {.validation = false, .held_out = false}},
      {"hostile", {.hostile = true}},
      {"one-layer", {.num_layers = 1, .num_kv_heads = 1, .max_length = 512}},
      {"large", oscar::LargeSample()}};
  for (const auto& [name, options] : samples) {
    const oscar::Json report = oscar::SampleReport(options);
    oscar::WriteFileAtomically(directory / (std::string(name) + ".json"),
                               oscar::CanonicalJson(report));
    oscar::WriteFileAtomically(directory / (std::string(name) + ".html"),
                               oscar::ReportPage(report));
  }
  for (const bool hostile : {false, true}) {
    const std::string name = hostile ? "comparison-hostile" : "comparison";
    const oscar::Json comparison =
        oscar::CombineReports({{"a", oscar::SampleReport({.hostile = hostile})},
                               {"b", oscar::SampleReport()},
                               {"c", oscar::SampleReport(oscar::LargeSample())}});
    oscar::WriteFileAtomically(directory / (name + ".json"), oscar::CanonicalJson(comparison));
    oscar::WriteFileAtomically(directory / (name + ".html"), oscar::ComparisonPage(comparison));
  }
  return 0;
}
