// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See combine_reports.h.
#include "tools/combine_reports.h"

#include <utility>

#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "export/report/comparison.h"

namespace fs = std::filesystem;

namespace oscar {

fs::path CombineReportFiles(const std::vector<std::string>& sources, const fs::path& output) {
  std::vector<NamedReport> reports;
  for (const std::string& source : sources) {
    const fs::path path =
        fs::is_directory(source) ? fs::path(source) / kReportFile : fs::path(source);
    reports.push_back({path.string(), ReadJsonFile(path.string())});
  }
  const Json comparison = CombineReports(reports);
  AtomicDirectory directory(output);
  WriteFileAtomically(directory.staging() / kComparisonFile, CanonicalJson(comparison));
  WriteFileAtomically(directory.staging() / kComparisonPageFile, ComparisonPage(comparison));
  directory.Commit();
  return output / kComparisonPageFile;
}

}  // namespace oscar
