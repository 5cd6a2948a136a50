// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares SHA-256 with the vectors of FIPS 180-4. Also tests digests of files, and that urgent
// reads go first.
#include "capture/files/digest.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>

#include "capture/files/atomic_file.h"
#include "capture/files/read_turns.h"
#include "linalg/base/error.h"
#include "tests/capture/files/page_cache.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
  EXPECT_EQ(Sha256Hex(""), kEmpty);
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i) pieces.Add(std::string(1000, 'a'));
  EXPECT_EQ(pieces.FinishHex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(DigestFile, EqualsTheDigestOfTheBytes) {
  const auto dir = TestScratch("digest");
  const std::string large(3'000'001, 'q');  // needs more than one read
  WriteFileAtomically(dir / "abc", "abc");
  WriteFileAtomically(dir / "large", large);
  EXPECT_EQ(DigestFile(dir / "abc"), (FileDigest{kAbc, 3}));
  EXPECT_EQ(DigestFile(dir / "large"), (FileDigest{Sha256Hex(large), large.size()}));
}

TEST(DigestFile, LeavesOnlyTheLastBytesInThePageCache) {
  const auto path = TestScratch("digest_cached") / "large";
  const std::string large(size_t{48} << 20, 'q');
  WriteFileAtomically(path, large);  // also flushes to disk
  const FileDigest digest = DigestFile(path);
  struct statfs system {};
  ASSERT_EQ(statfs(path.c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC || CachedPages(path) < 48 * 256)
    GTEST_SKIP() << "no page cache over a disk here";
  EXPECT_EQ(DigestFile(path, nullptr, size_t{8} << 20), digest);
  EXPECT_LT(CachedPages(path), 24U * 256);
  EXPECT_GE(CachedPages(path), 8U * 256);
}

TEST(DigestFile, RefusesWhatIsNotAFile) {
  const auto dir = TestScratch("digest");
  EXPECT_THROW(DigestFile(dir / "none"), InputError);
  EXPECT_THROW(DigestFile(dir), InputError);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(DigestFile(dir / "pipe"), InputError);  // must not wait for a writer
}

// A digest in the background waits while the computation waits for reads.
TEST(ReadTurns, TheBackgroundWaitsForUrgentReadsAndEndsWhenNobodyWantsIt) {
  const auto dir = TestScratch("turns");
  const std::string large(3'000'001, 'q');
  WriteFileAtomically(dir / "large", large);
  ReadTurns turns;
  std::atomic<int> pieces = 0;
  const auto digest = [&] {
    return DigestFile(dir / "large", [&](uint64_t) {
      turns.WaitForTurn();
      ++pieces;
    });
  };
  std::optional<ReadTurns::Urgent> first(turns), second(turns);
  auto waiting = std::async(std::launch::async, digest);
  first.reset();
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_EQ(pieces, 0);
  second.reset();
  EXPECT_EQ(waiting.get().sha256, Sha256Hex(large));
  EXPECT_EQ(pieces, 4);  // three pieces and the end of the file

  const ReadTurns::Urgent forever(turns);
  auto abandoned = std::async(std::launch::async, digest);
  EXPECT_EQ(abandoned.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  { const ReadTurns::Closing closing(turns); }
  EXPECT_THROW(abandoned.get(), Interrupted);
  EXPECT_EQ(pieces, 4);
}

TEST(ReadTurns, TheBackgroundStaysCloseToTheComputation) {
  ReadTurns turns;
  turns.WaitForTurn(1);
  turns.SetLead(0.25);
  turns.WaitForTurn(0.25);
  auto ahead = std::async(std::launch::async, [&] { turns.WaitForTurn(0.75); });
  turns.Reach(0.4);
  EXPECT_EQ(ahead.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  turns.Reach(0.5);
  ahead.get();
}

}  // namespace
}  // namespace oscar
