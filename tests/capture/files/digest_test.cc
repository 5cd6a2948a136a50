// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 against the vectors of FIPS 180-4.
#include "capture/files/digest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "capture/files/atomic_file.h"
#include "linalg/error.h"
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
  const std::string large(3'000'001, 'q');  // more than one read
  WriteFileAtomically(dir / "abc", "abc");
  WriteFileAtomically(dir / "large", large);
  EXPECT_EQ(DigestFile(dir / "abc"), (FileDigest{kAbc, 3}));
  EXPECT_EQ(DigestFile(dir / "large"), (FileDigest{Sha256Hex(large), large.size()}));
}

TEST(DigestFile, RefusesWhatIsNotAFile) {
  const auto dir = TestScratch("digest");
  EXPECT_THROW(DigestFile(dir / "none"), InputError);
  EXPECT_THROW(DigestFile(dir), InputError);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(DigestFile(dir / "pipe"), InputError);  // and does not wait for a writer
}

}  // namespace
}  // namespace oscar
