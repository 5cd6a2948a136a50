// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <typeinfo>

#include "capture/files/temporary_directory.h"
#include "tests/fuzz/harness/harnesses.h"

namespace fs = std::filesystem;

namespace oscar::fuzz {

std::span<const Harness* const> AllHarnesses() {
  static constexpr const Harness* kAll[] = {
      &kSafetensors, &kWeightIndex, &kPickle,  &kPt,       &kGguf,   &kGgufModel,
      &kNpy,         &kTokenizer,   &kJinja,   &kRows,     &kConfig, &kQuantization,
      &kReport,      &kArtifact,    &kMoments, &kZooEntry, &kYaml,   &kBundle,
      &kZooJson,     &kWeights,     &kDump,    &kShard};
  return kAll;
}

void RunOne(const Harness& harness, std::string_view input) {
  try {
    harness.run(input);
  } catch (const Error&) {
    // A refusal is not a finding.
  } catch (const std::exception& error) {
    Finding(harness.name.data(), 0, fmt::format("{}: {}", typeid(error).name(), error.what()));
  }
}

void Finding(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "finding: %s:%d: %s\n", file, line, what.c_str());
  std::abort();
}

void CheckUtf8(std::string_view text) {
  try {
    (void)Json(text).dump();
  } catch (const Json::exception&) {
    Finding("text", 0, "is no UTF-8");
  }
}

std::vector<std::string> SeedFiles(std::string_view folder, std::string_view name,
                                   size_t max_bytes) {
  std::vector<std::string> seeds;
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(OSCAR_SOURCE_DIR) / "tests/data" / folder)) {
    const std::string file = entry.path().filename().string();
    if (entry.is_regular_file() && file.ends_with(name) && entry.file_size() <= max_bytes)
      found.push_back(entry.path());
  }
  std::ranges::sort(found);
  for (const fs::path& path : found) seeds.push_back(ReadAll(path));
  return seeds;
}

std::vector<std::string> Accepted(std::vector<std::string> seeds, void (*run)(std::string_view)) {
  std::erase_if(seeds, [&](const std::string& seed) {
    try {
      run(seed);
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return seeds;
}

std::vector<Json> SeedRows(std::string_view file) {
  std::ifstream in(fs::path(OSCAR_SOURCE_DIR) / "tests/data" / file, std::ios::binary);
  std::vector<Json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(Json::parse(line));
  return rows;
}

const fs::path& Scratch() {
  static const TemporaryDirectory folder("fuzz");  // fastest with TMPDIR=/dev/shm
  return folder.path();
}

void WriteAll(const fs::path& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != std::ssize(bytes) || close(file) != 0)
    Finding("scratch", 0, "cannot write " + path.string());
}

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace oscar::fuzz
