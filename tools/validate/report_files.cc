// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/report_files.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <set>
#include <string>

#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"  // CanonicalJson
#include "export/report/chart_files.h"
#include "export/report/comparison_table.h"
#include "export/report/llama_perplexity.h"
#include "export/report/lm_eval_results.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kLongestName = 160;  // bytes; file systems accept 255

// Makes file names for models and arms. They are distinct whatever the reports contain.
class FileNames {
 public:
  std::string Of(const std::string& text) {
    std::string name = text.substr(0, kLongestName);
    for (char& c : name) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '=' || c == '.';
      if (!plain) c = '_';
    }
    if (name.starts_with('.')) name[0] = '_';
    std::string unique = name;
    for (int i = 2; !used_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
    return unique;
  }

 private:
  std::set<std::string> used_;
};

void Write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  WriteFileAtomically(path, text);
}

// Names a file as lm-eval does, with an ISO date without colons.
std::string ResultsName(double date) {
  return fmt::format("results_{:%Y-%m-%dT%H-%M-%S}.json",
                     fmt::gmtime(static_cast<std::time_t>(date)));
}

}  // namespace

void WriteReportFiles(const std::vector<NamedReport>& reports, const fs::path& output) {
  AtomicDirectory directory(output);
  const fs::path& into = directory.staging();
  Write(into / "numbers.csv", ComparisonCsv(CombineReports(reports)));
  FileNames models, arms;
  for (const auto& [source, report, date] : reports) {
    const Json& validation = report.at("validation");
    const fs::path plots = into / "plots" / models.Of(ModelId(report));
    for (const ChartFile& chart : ChartFiles(report)) Write(plots / chart.name, chart.svg);
    for (const Json& arm : validation.at("arms")) {
      if (!arm.contains("text")) continue;
      const std::string name = arms.Of(ModelWithCache(report, arm));
      Write(into / "lm-eval" / name / ResultsName(date),
            CanonicalJson(LmEvalResults(report, arm, date)));
      if (&arm == &validation.at("arms").front()) continue;
      Write(into / "llama-perplexity" / (name + ".txt"), LlamaPerplexityText(report, arm, "text"));
      if (arm.contains("own_words"))
        Write(into / "llama-perplexity" / (name + ".own_words.txt"),
              LlamaPerplexityText(report, arm, "own_words"));
    }
  }
  directory.Commit();
}

}  // namespace oscar
