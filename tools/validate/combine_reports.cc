// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/combine_reports.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "export/report/comparison.h"
#include "export/report/comparison_table.h"
#include "linalg/base/error.h"
#include "tools/validate/report_files.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string ReadPage(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  return text;
}

}  // namespace

void WriteReportCsv(const std::string& source, const Json& report, const fs::path& path) {
  WriteFileAtomically(path, ComparisonCsv(CombineReports({{source, report}})));
}

fs::path CombineReportFiles(const CombineOptions& options) {
  std::vector<NamedReport> reports;
  for (const std::string& source : options.sources) {
    const fs::path path =
        fs::is_directory(source) ? fs::path(source) / kReportFile : fs::path(source);
    Json report = ReadJsonFile(path.string());
    const auto written = std::chrono::file_clock::to_sys(fs::last_write_time(path));
    reports.push_back({path.string(), std::move(report),
                       std::chrono::duration<double>(written.time_since_epoch()).count()});
  }
  const Json comparison = CombineReports(reports);
  if (!options.csv.empty()) WriteFileAtomically(options.csv, ComparisonCsv(comparison));
  if (!options.write.empty()) WriteReportFiles(reports, options.write);
  if (options.output.empty()) return options.write.empty() ? options.csv : options.write;
  const std::string table = ComparisonMarkdown(comparison, options.table_rows);
  std::string page;
  if (!options.table_into.empty())
    page = WithTable(ReadPage(options.table_into), table, options.table_into);
  AtomicDirectory directory(options.output);
  const fs::path& into = directory.staging();
  WriteFileAtomically(into / kComparisonFile, CanonicalJson(comparison));
  WriteFileAtomically(into / kComparisonPageFile, ComparisonPage(comparison));
  WriteFileAtomically(into / kComparisonCsvFile, ComparisonCsv(comparison));
  WriteFileAtomically(into / kComparisonTableFile, table);
  directory.Commit();
  if (!options.table_into.empty()) WriteFileAtomically(options.table_into, page);
  return options.output / kComparisonPageFile;
}

}  // namespace oscar
