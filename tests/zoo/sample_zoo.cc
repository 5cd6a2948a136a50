// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See sample_zoo.h.
#include "tests/zoo/sample_zoo.h"

#include <fstream>
#include <iterator>

#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/report/sample_report.h"

namespace fs = std::filesystem;

namespace oscar {

void WriteText(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

void EditJson(const fs::path& file, const std::function<void(Json&)>& edit) {
  Json json = ReadJsonFile(file);
  edit(json);
  WriteText(file, CanonicalJson(json));
}

void Reseal(const fs::path& artifact) {
  EditJson(artifact / kManifestFile, [&](Json& manifest) {
    for (auto& [name, digest] : manifest.at("files").items())
      digest = DigestToJson(DigestFile(artifact / name));
  });
}

void EditValidation(const fs::path& artifact, const std::function<void(Json&)>& edit) {
  EditJson(artifact / kReportFile, [&](Json& report) { edit(report.at("validation")); });
  Reseal(artifact);
}

void WriteValidated(const fs::path& artifact, unsigned seed,
                    const std::function<void(Json&)>& edit) {
  WriteSampleArtifact(artifact, seed);
  EditJson(artifact / kReportFile, [&](Json& report) {
    report["$schema"]["version"] = kReportVersion;
    report["validation"] = SampleReport().at("validation");
    report["validation"]["rotations"] = DigestToJson(DigestFile(artifact / kRotationsFile));
  });
  if (edit) {
    EditValidation(artifact, edit);
  } else {
    Reseal(artifact);
  }
}

Zoo NewZoo(const fs::path& path) {
  InitZoo(path);
  return Zoo::Open(path);
}

std::map<std::string, std::string> TreeBytes(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (!entry.is_regular_file() || name.starts_with("staging/")) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[name] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

}  // namespace oscar
