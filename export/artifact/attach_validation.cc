// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/attach_validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "capture/files/posix_file.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/model_card.h"
#include "export/artifact/report.h"
#include "export/report/of_record.h"
#include "export/report/report_page.h"
#include "export/report/report_schema.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Gives a file a second name: a hard link, or a copy if the file system has no links.
void LinkOrCopy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error) return;
  fs::copy_file(from, to, error);
  if (error) ThrowResource("copy to", to, error.value());
}

void WriteReport(const fs::path& directory, const Json& report) {
  WriteFileAtomically(directory / kReportFile, CanonicalJson(report));
  WriteFileAtomically(directory / kReportPageFile, ReportPage(report));
}

}  // namespace

Json ReportWithValidation(const Artifact& artifact, const Json& validation) {
  Json report = artifact.report();
  report["$schema"] = {{"name", kReportSchema}, {"version", kReportVersion}};
  report["validation"] = validation;
  CheckReport(report, "the new report");
  return report;
}

bool HasValidation(const Artifact& artifact) { return artifact.report().contains("validation"); }

fs::path ComparisonDirectory(const fs::path& artifact) {
  fs::path plain = artifact.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();  // removes the slash of "artifact/"
  if (plain.filename() == "." || plain.filename() == "..") plain = fs::canonical(artifact);
  const std::string name = plain.string() + "-comparison";
  fs::path path = name;
  for (int number = 2; fs::exists(fs::symlink_status(path)); ++number)
    path = fmt::format("{}-{}", name, number);
  return path;
}

void AttachReport(const Artifact& artifact, const Json& report) {
  const std::string what = (artifact.directory() / kReportFile).string();
  const std::vector<std::string> reasons =
      WhyNotOfRecord(FactsOf(JsonMember(report, "validation", what), what), report, what);
  if (!reasons.empty()) {
    throw UsageError(fmt::format("{}: a comparison cannot be stored in the artifact: {}", what,
                                 fmt::join(reasons, "; ")));
  }
  AtomicDirectory directory(artifact.directory(), AtomicDirectory::Target::kReplace);
  const fs::path& staging = directory.staging();
  WriteReport(staging, report);
  WriteFileAtomically(staging / kCardFile, ModelCard(report));
  Json manifest = artifact.manifest();
  for (const auto& entry : fs::directory_iterator(artifact.directory())) {
    const fs::path name = entry.path().filename();
    if (name != kManifestFile && !fs::exists(staging / name))
      LinkOrCopy(entry.path(), staging / name);
  }
  for (const char* file : {kReportFile, kReportPageFile, kCardFile})
    manifest["files"][file] = DigestToJson(DigestFile(staging / file));
  WriteFileAtomically(staging / kManifestFile, CanonicalJson(manifest));
  directory.Commit();
}

void WriteReportDirectory(const fs::path& path, const Json& report) {
  AtomicDirectory directory(path);
  WriteReport(directory.staging(), report);
  directory.Commit();
}

}  // namespace oscar
