// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_data.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace oscar {

std::filesystem::path TestData(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(OSCAR_SOURCE_DIR) / "tests/data" / name;
  if (!std::filesystem::exists(path))
    throw std::runtime_error("missing test data: " + path.string());
  return path;
}

std::optional<std::filesystem::path> TestPack(const std::string& name) {
  const char* root = std::getenv("OSCAR_TEST_PACKS");
  if (root == nullptr || *root == 0) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(root) / name;
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error("OSCAR_TEST_PACKS is set, but there is no " + path.string());
  }
  return path;
}

namespace {

// The scratch directory of this process. It is removed when the process ends, but not when a forked
// child ends.
struct Scratch {
  const pid_t owner = getpid();
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("oscar-test-" + std::to_string(owner));
  ~Scratch() {
    std::error_code ignored;
    if (getpid() == owner) std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::filesystem::path TestScratch(const std::string& name) {
  static const Scratch scratch;
  const std::filesystem::path path = scratch.path / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace oscar
