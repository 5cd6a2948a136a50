// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the pages in a browser, with chromium_check.py. If OSCAR_REPORT_SHOTS names a folder, the
// pages and their screenshots are written there.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "capture/files/atomic_file.h"
#include "export/report/comparison.h"
#include "export/report/report_page.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct Outcome {
  std::string output;
  int code = -1;
};

Outcome Check(const fs::path& directory) {
  // Python and the browser must not preload the sanitizers' runtime.
  std::string command = std::string("env -u LD_PRELOAD '") + OSCAR_PYTHON + "' '" +
                        OSCAR_CHROMIUM_SCRIPT + "' '" + directory.string() + "'";
  if (const char* shots = std::getenv("OSCAR_REPORT_SHOTS"))
    command += std::string(" --shots '") + shots + "'";
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof(buffer), pipe))
    outcome.output.append(buffer, size);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

void Write(const fs::path& directory, const std::string& name, const Json& report,
           const std::string& page) {
  WriteFileAtomically(directory / (name + ".json"), CanonicalJson(report));
  WriteFileAtomically(directory / (name + ".html"), page);
}

bool NoChromium(const Outcome& outcome) { return outcome.code == 77 || outcome.code == 127; }

TEST(Chromium, ShowsEveryPageWholeAndEveryNumberAsRecorded) {
  const fs::path directory = TestScratch("report-pages");
  const std::pair<const char*, SampleReportOptions> samples[] = {
      {"validated", {}},
      {"failed", {.gate_passes = false, .kernels_pass = false}},
      {"no-gate", {.gate = false}},
      {"dump", {.end_to_end = false, .gate_passes = false}},
      {"calibrated", {.validation = false}},
      {"nothing-held-out", {.validation = false, .held_out = false}},
      {"hostile", {.hostile = true}},
      {"one-layer", {.num_layers = 1, .num_kv_heads = 1, .max_length = 512}},
      {"large", LargeSample()}};
  for (const auto& [name, options] : samples) {
    const Json report = SampleReport(options);
    Write(directory, name, report, ReportPage(report));
  }
  for (const bool hostile : {false, true}) {
    const Json comparison = CombineReports({{"a", SampleReport({.hostile = hostile})},
                                            {"b", SampleReport()},
                                            {"c", SampleReport(LargeSample())}});
    Write(directory, hostile ? "comparison-hostile" : "comparison", comparison,
          ComparisonPage(comparison));
  }
  if (const char* shots = std::getenv("OSCAR_REPORT_SHOTS"))
    fs::copy(directory, shots, fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  const Outcome outcome = Check(directory);
  if (NoChromium(outcome)) OSCAR_SKIP_WITHOUT_PACKAGE("chromium");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// Tests that the check itself can fail: for a wrong number or place, overflow, a script, a request.
TEST(Chromium, CheckTurnsRedOnAWrongPage) {
  const Json report = SampleReport({.validation = false});
  const std::string page = ReportPage(report);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = page;
    const size_t at = changed.find(from);
    EXPECT_NE(at, changed.npos) << from;
    return at == changed.npos ? changed : changed.replace(at, from.size(), to);
  };
  const struct {
    const char* what;
    std::string page;
    const char* message;
  } cases[] = {
      {"number", replaced(">0.0372</data>", ">0.0373</data>"), "the page shows '0.0373'"},
      {"place",
       replaced("data-path=\"/summary/arms/oscar_per_head/kl_mean_beyond\"",
                "data-path=\"/summary/arms/naive/kl_mean_beyond\""),
       "the record 0.12"},
      {"overflow", replaced("</main>", "<div style=\"width:3000px\">x</div></main>"), "px of page"},
      {"script", replaced("</main>", "<script>console.log(1)</script></main>"), "1 scripts"},
      {"request", replaced("</main>", "<img src=\"other.png\" alt=\"\"></main>"), "console:"},
  };
  for (const auto& wrong : cases) {
    const fs::path directory = TestScratch("report-wrong");
    Write(directory, wrong.what, report, wrong.page);
    const Outcome outcome = Check(directory);
    if (NoChromium(outcome)) OSCAR_SKIP_WITHOUT_PACKAGE("chromium");
    EXPECT_EQ(outcome.code, 1) << wrong.what << ": " << outcome.output;
    EXPECT_NE(outcome.output.find(wrong.message), outcome.output.npos)
        << wrong.what << ": " << outcome.output;
  }
}

}  // namespace
}  // namespace oscar
