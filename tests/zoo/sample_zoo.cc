// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/zoo/sample_zoo.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "export/measures/table.h"
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

namespace {

// Changes the sample's numbers, which were made up for charts, so that they agree with each other
// and with the artifact.
void MakeOfRecord(Json& validation) {
  const auto metrics = [](Json& m) {
    const Json kl = m["kl"]["mean"];
    const Json of_heads = {{kl, kl}, {kl, kl}};
    m["heads"] = {{"layer_ids", {3, 11}}, {"kl", of_heads}};
    m["worst"] = {{"layer_id", 3}, {"kv_head", 0}, {"kl", kl}};
    double sum = 0;
    int64_t rows = 0;
    for (const Json& bucket : m["by_position"]) {
      sum += bucket["kl"].get<double>() * bucket["rows"].get<double>();
      rows += bucket["rows"].get<int64_t>();
    }
    m["kl_all"] = sum / static_cast<double>(rows);
    m["inside_windows"] = {{"rows", 0}, {"kl", 0.0}};
    m["beyond_windows"] = {{"rows", rows}, {"kl", m["kl_all"]}};
  };
  for (Json& arm : validation["arms"]) {
    metrics(arm["local"]);
    metrics(arm["end_to_end"]);
    Json& text = arm["text"];
    const double tokens = text["scored_tokens"];
    text["top1_agreement"] = std::round(text["top1_agreement"].get<double>() * tokens) / tokens;
    for (const char* rows : {"by_task", "by_length"})
      for (Json& row : arm["needle"][rows]) row["accuracy"] = arm["needle"]["accuracy"];
  }
  for (Json& arm : validation["arms"]) {
    if (!arm.contains("ideal")) continue;
    for (const Json& other : validation["arms"])
      if (other["name"] == arm["ideal"]["arm"]) arm["ideal"] = RuntimeLoss(arm, other);
  }
  int64_t tokens = 0;
  for (const Json& text : validation["data"]["texts"])
    tokens += text["length"].get<int64_t>() * text["sequences"].get<int64_t>();
  validation["data"]["tokens"] = tokens;
  validation["settings"]["quant_group_size"] = 0;
}

}  // namespace

void WriteValidated(const fs::path& artifact, unsigned seed,
                    const std::function<void(Json&)>& edit) {
  WriteSampleArtifact(artifact, seed);
  EditJson(artifact / kReportFile, [&](Json& report) {
    report["$schema"]["version"] = kReportVersion;
    report["validation"] = SampleReport().at("validation");
    MakeOfRecord(report["validation"]);
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
