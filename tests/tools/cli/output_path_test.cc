// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_path.h"

#include <gtest/gtest.h>

#include <fstream>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string Problem(const fs::path& path) {
  return ErrorOf<InputError>([&] { CheckNewOutput(path); });
}

TEST(OutputPath, MustBeNewInADirectoryThatIsThere) {
  const fs::path folder = TestScratch("output_path");
  EXPECT_EQ(Problem(folder / "new"), "");
  EXPECT_EQ(Problem((folder / "new").string() + "/"), "");
  EXPECT_TRUE(Says(Problem(folder), "exists already"));
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  EXPECT_TRUE(Says(Problem(folder / "dangling"), "exists already"));
  EXPECT_EQ(Problem(folder / "a" / "b"),
            (folder / "a" / "b").string() + ": cannot be created, because " +
                (folder / "a").string() + " is not a directory; create that directory first");
  std::ofstream(folder / "file") << "x";
  EXPECT_TRUE(Says(Problem(folder / "file" / "b"), "is not a directory"));
  CheckNewOutput(folder / "a" / "b", /*makes_folders=*/true);
  EXPECT_THROW(CheckNewOutput(folder / "file" / "b", /*makes_folders=*/true), InputError);
}

TEST(OutputPath, TooLittleSpaceIsSaidInNumbers) {
  const fs::path folder = TestScratch("output_space");
  EXPECT_EQ(SpaceProblem(folder / "x", 1, "the dump"), "");
  EXPECT_EQ(SpaceProblem(folder / "not" / "yet" / "made", 1, "the dump"), "");
  const std::string problem = SpaceProblem(folder / "x", uint64_t{1} << 62, "the dump");
  EXPECT_TRUE(Says(problem, "the dump needs 4611686018.43 GB of disk space, but only "));
  EXPECT_THROW(CheckSpace(folder / "x", uint64_t{1} << 62, "the dump"), ResourceError);
}

}  // namespace
}  // namespace oscar
