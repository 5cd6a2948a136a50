// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Paths of test files. A missing file in tests/data is a failure. The larger packs are optional:
// without OSCAR_TEST_PACKS, a test that needs one is skipped with a message.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

namespace oscar {

// Returns the path of tests/data/<name>; throws if it does not exist.
std::filesystem::path TestData(const std::string& name);

// Returns the path of <name> in the directory OSCAR_TEST_PACKS, or nothing if that variable is
// unset. Throws if the variable is set but the path does not exist.
std::optional<std::filesystem::path> TestPack(const std::string& name);

// Returns the bytes of a file, or "" if it cannot be read.
std::string ReadText(const std::filesystem::path& path);

// Returns an empty directory for this test. Another call with the same name empties it again.
std::filesystem::path TestScratch(const std::string& name);

}  // namespace oscar

// Skips the test because a package that tools/setup.sh --tests installs is missing. tools/test.sh
// counts that as a failure if the package registries have the package.
#define OSCAR_SKIP_WITHOUT_PACKAGE(name) \
  GTEST_SKIP() << "package " << (name) << " is not installed: tools/setup.sh --tests"

// Binds `variable` to the pack, or skips the test.
#define OSCAR_PACK_OR_SKIP(variable, name)                                                   \
  const auto variable##_optional = ::oscar::TestPack(name);                                  \
  if (!variable##_optional) GTEST_SKIP() << "OSCAR_TEST_PACKS is not set: needs " << (name); \
  const std::filesystem::path variable = *variable##_optional
