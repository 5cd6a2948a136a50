// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Paths of the tests' files. A missing file of tests/data is a failure; the wide packs are
// optional, and a test without its pack is skipped with a message.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

namespace oscar {

// tests/data/<name>; fails the test run if it is missing.
std::filesystem::path TestData(const std::string& name);

// The directory named by OSCAR_TEST_PACKS joined with <name>, or nothing if the variable is unset.
// Set but missing: a failure.
std::optional<std::filesystem::path> TestPack(const std::string& name);

// The bytes of a file; "" if it cannot be read.
std::string ReadText(const std::filesystem::path& path);

// An empty directory of this test, removed and made anew at each call with the same name.
std::filesystem::path TestScratch(const std::string& name);

}  // namespace oscar

// Skips the test for want of a package that tools/setup.sh --tests installs. tools/test.sh fails
// where a registry has it.
#define OSCAR_SKIP_WITHOUT_PACKAGE(name) \
  GTEST_SKIP() << "package " << (name) << " is not installed: tools/setup.sh --tests"

// Binds `variable` to the pack, or skips the test.
#define OSCAR_PACK_OR_SKIP(variable, name)                                                   \
  const auto variable##_optional = ::oscar::TestPack(name);                                  \
  if (!variable##_optional) GTEST_SKIP() << "OSCAR_TEST_PACKS is not set: needs " << (name); \
  const std::filesystem::path variable = *variable##_optional
