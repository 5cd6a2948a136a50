// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/formats/upstream_pack.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <map>
#include <string>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"
#include "export/formats/inspect.h"
#include "export/formats/rotation_file.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kMaxGrowth = 100 << 10;  // KiB of resident memory per hostile file

int64_t PeakKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void ExpectContains(const Json& found, const Json& expected, const std::string& where) {
  if (expected.is_object()) {
    ASSERT_TRUE(found.is_object()) << where;
    for (const auto& [key, value] : expected.items()) {
      if (key == "source") continue;  // where the file came from, not what it holds
      ASSERT_TRUE(found.contains(key)) << where << "/" << key;
      ExpectContains(found[key], value, where + "/" + key);
    }
  } else if (expected.is_array()) {
    ASSERT_TRUE(found.is_array() && found.size() == expected.size()) << where;
    for (size_t i = 0; i < expected.size(); ++i) {
      ExpectContains(found[i], expected[i], where + "/" + std::to_string(i));
    }
  } else if (expected.is_number_float()) {
    ASSERT_TRUE(found.is_number()) << where;
    const double e = expected.get<double>();
    EXPECT_NEAR(found.get<double>(), e, std::max(1e-12, 1e-9 * std::abs(e))) << where;
  } else {
    EXPECT_EQ(found, expected) << where;
  }
}

// Returns the SHA-256 of each layer's rotation by layer id, as in index.json.
std::map<std::string, std::string> Digests(const RotationFile& file) {
  std::map<std::string, std::string> out;
  for (const RotationLayer& layer : file.layers) {
    if (!layer.rotation) continue;
    out[std::to_string(layer.layer_id)] =
        Sha256Hex(std::as_bytes(std::span(layer.rotation->values)));
  }
  return out;
}

void CheckVerdict(const std::filesystem::path& path, const Json& row) {
  const bool accept = row.at("class") == "accept";
  const bool strict = row.at("strict").get<bool>();
  const int64_t before = PeakKib();
  const auto start = std::chrono::steady_clock::now();
  std::string refusal;
  std::map<std::string, std::string> digests;
  try {
    if (std::filesystem::is_directory(path)) {
      const auto files = FindRotationPair(path);
      ASSERT_TRUE(files.has_value());
      OpenRotationPair(files->first, files->second);
    } else {
      digests = Digests(OpenRotationFile(path));
    }
  } catch (const InputError& error) {
    refusal = error.what();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(elapsed.count(), 1.0);
  EXPECT_LT(PeakKib() - before, kMaxGrowth);
  if (strict) {
    EXPECT_EQ(refusal.empty(), accept) << refusal;
  }
  if (refusal.empty() && row.contains("rotation_sha256")) {
    EXPECT_EQ(Json(digests), row["rotation_sha256"]);
  }
  if (!refusal.empty()) {
    EXPECT_NE(refusal.find(path.filename().string()), std::string::npos);
  }

  bool inspected = true;
  try {
    InspectText(InspectFile(path));
  } catch (const InputError&) {
    inspected = false;
  }
  EXPECT_EQ(inspected, refusal.empty()) << "report and reader disagree: " << refusal;
}

}  // namespace

int CheckExpectations(const std::filesystem::path& folder) {
  int checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().string();
    constexpr std::string_view kSuffix = ".expect.json";
    if (!name.ends_with(kSuffix)) continue;
    if (name.find("optr-k-mean") != name.npos) continue;  // format no longer supported
    const std::string file = name.substr(0, name.size() - kSuffix.size()) + ".pt";
    SCOPED_TRACE(file);
    ExpectContains(InspectFile(file), ReadJsonFile(name), "");
    ++checked;
  }
  return checked;
}

int CheckVerdicts(const std::filesystem::path& folder) {
  int checked = 0;
  const Json index = ReadJsonFile((folder / "index.json").string());
  for (const Json& row : index.at("cases")) {
    const std::string file = row.at("file");
    SCOPED_TRACE(file + ": " + row.at("why").get<std::string>());
    CheckVerdict(folder / file, row);
    ++checked;
  }
  return checked;
}

}  // namespace oscar
