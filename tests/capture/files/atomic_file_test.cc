// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a file appears completely or not at all. RLIMIT_FSIZE simulates a full disk: the
// kernel fails writes past the limit. It applies to the whole process, so the tests restore it
// before they check anything.
#include "capture/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

size_t Entries(const fs::path& directory) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

// Limits the size of all files of this process to `bytes` during its lifetime.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  rlimit old_{};
};

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const fs::path dir = TestScratch("atomic");
  AtomicFile file(dir / "a");
  file.Write("hello ");
  file.Write("world");
  EXPECT_EQ(file.size(), 11u);
  EXPECT_FALSE(fs::exists(dir / "a"));
  file.Commit();
  EXPECT_EQ(ReadText(dir / "a"), "hello world");
  EXPECT_EQ(Entries(dir), 1u);
}

TEST(AtomicFile, DroppedLeavesTheOldFileAndNoTemporary) {
  const fs::path dir = TestScratch("atomic");
  WriteFileAtomically(dir / "a", "old");
  {
    AtomicFile file(dir / "a");
    file.Write("new");
    EXPECT_EQ(Entries(dir), 2u);
  }
  EXPECT_EQ(ReadText(dir / "a"), "old");
  EXPECT_EQ(Entries(dir), 1u);
}

TEST(AtomicFile, ReplacesAndTwoWritersDoNotShareATemporary) {
  const fs::path dir = TestScratch("atomic");
  AtomicFile first(dir / "a"), second(dir / "a");
  first.Write("first");
  second.Write("second");
  second.Commit();
  first.Commit();
  EXPECT_EQ(ReadText(dir / "a"), "first");
}

TEST(AtomicFile, FullDiskAtEveryByteKeepsTheOldFile) {
  const fs::path dir = TestScratch("atomic");
  const std::string content(300, 'x');
  WriteFileAtomically(dir / "a", "old");
  for (rlim_t room = 0; room < content.size(); ++room) {
    std::string message;
    {
      const FileSizeLimit limit(room);
      try {
        WriteFileAtomically(dir / "a", content);
      } catch (const ResourceError& error) {
        message = error.what();
      }
    }
    ASSERT_TRUE(Says(message, (dir / "a").string())) << room;
    ASSERT_TRUE(Says(message, "write 300 bytes at offset 0"));
    ASSERT_TRUE(Says(message, "File too large"));
    ASSERT_EQ(ReadText(dir / "a"), "old");
    ASSERT_EQ(Entries(dir), 1u);
  }
  WriteFileAtomically(dir / "a", content);
  EXPECT_EQ(ReadText(dir / "a"), content);
}

TEST(AtomicFile, CannotBeCommittedAfterAFailedWrite) {
  const fs::path dir = TestScratch("atomic");
  AtomicFile file(dir / "a");
  {
    const FileSizeLimit limit(0);
    EXPECT_THROW(file.Write("x"), ResourceError);
  }
  EXPECT_DEATH(file.Commit(), "bug in oscar");
}

TEST(AtomicFile, MissingDirectoryIsAResourceErrorWithAdvice) {
  const fs::path dir = TestScratch("atomic");
  EXPECT_TRUE(Says(ErrorOf<ResourceError>([&] { AtomicFile file(dir / "none/a"); }),
                   "create the directory first"));
}

TEST(AtomicFile, ADirectoryInTheWayIsNotReplaced) {
  const fs::path dir = TestScratch("atomic");
  fs::create_directory(dir / "a");
  EXPECT_THROW(WriteFileAtomically(dir / "a", "x"), ResourceError);
  EXPECT_EQ(Entries(dir), 1u);
}

TEST(AtomicDirectory, AppearsWholeOnCommit) {
  const fs::path dir = TestScratch("atomic");
  AtomicDirectory out(dir / "d/");  // a trailing slash is ignored
  WriteFileAtomically(out.staging() / "one", "1");
  fs::create_directory(out.staging() / "sub");
  WriteFileAtomically(out.staging() / "sub/two", "2");
  EXPECT_FALSE(fs::exists(dir / "d"));
  out.Commit();
  EXPECT_EQ(ReadText(dir / "d/sub/two"), "2");
  EXPECT_EQ(Entries(dir), 1u);
}

TEST(AtomicDirectory, DroppedLeavesNothing) {
  const fs::path dir = TestScratch("atomic");
  {
    AtomicDirectory out(dir / "d");
    WriteFileAtomically(out.staging() / "one", "1");
  }
  EXPECT_EQ(Entries(dir), 0u);
}

TEST(AtomicDirectory, NeverReplacesWhatExists) {
  const fs::path dir = TestScratch("atomic");
  fs::create_directory(dir / "d");
  EXPECT_THROW(AtomicDirectory(dir / "d"), InputError);
  fs::remove(dir / "d");
  AtomicDirectory out(dir / "d");
  fs::create_directory(dir / "d");  // another process created it first; an empty one counts too
  EXPECT_THROW(out.Commit(), InputError);
  EXPECT_TRUE(fs::is_empty(dir / "d"));
}

}  // namespace
}  // namespace oscar
