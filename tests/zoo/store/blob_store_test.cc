// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/blob_store.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include "linalg/base/error.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

FileDigest DigestOf(const std::string& text) { return {Sha256Hex(text), text.size()}; }

TEST(BlobStore, BytesComeOutAsTheyWentIn) {
  EXPECT_TRUE(rc::check([] {
    const fs::path scratch = TestScratch("blobs");
    const Zoo zoo = NewZoo(scratch / "zoo");
    const auto text = *rc::gen::arbitrary<std::string>();
    WriteText(scratch / "in", text);
    RC_ASSERT(AddBlob(zoo.path(), scratch, scratch / "in", DigestOf(text)));
    RC_ASSERT(!AddBlob(zoo.path(), scratch, scratch / "in", DigestOf(text)));
    const fs::path blob = BlobPath(zoo.path(), Sha256Hex(text));
    CopyChecked(blob, DigestOf(text), scratch / "out");
    RC_ASSERT(ReadSmallFile(scratch / "out", text.size()) == text);
    RC_ASSERT(ListBlobs(zoo.path()).blobs == std::vector<FileDigest>{DigestOf(text)});
  }));
}

TEST(BlobStore, AnyOtherContentIsRefusedAndLeavesNothing) {
  EXPECT_TRUE(rc::check([] {
    const fs::path scratch = TestScratch("blobs");
    const Zoo zoo = NewZoo(scratch / "zoo");
    const auto text = *rc::gen::arbitrary<std::string>();
    const auto other = *rc::gen::distinctFrom(text);
    WriteText(scratch / "in", other);
    RC_ASSERT(!ContentProblem(scratch / "in", DigestOf(text)).empty());
    RC_ASSERT_THROWS_AS(AddBlob(zoo.path(), scratch, scratch / "in", DigestOf(text)), InputError);
    RC_ASSERT_THROWS_AS(CopyChecked(scratch / "in", DigestOf(text), scratch / "out"), InputError);
    RC_ASSERT(!fs::exists(scratch / "out"));
    RC_ASSERT(ListBlobs(zoo.path()).blobs.empty());
    RC_ASSERT(std::distance(fs::directory_iterator(scratch), fs::directory_iterator()) == 2);
  }));
}

TEST(BlobStore, AFileOfAnotherSizeIsNotEvenRead) {
  const fs::path scratch = TestScratch("blobs");
  WriteText(scratch / "sparse", "");
  fs::resize_file(scratch / "sparse", uint64_t{1} << 40);  // reading this would take minutes
  EXPECT_NE(ContentProblem(scratch / "sparse", DigestOf("x")).find("bytes, expected 1"),
            std::string::npos);
  EXPECT_THROW(ReadSmallFile(scratch / "sparse", 100), InputError);
}

TEST(BlobStore, PipesAndDirectoriesAreNoContent) {
  const fs::path scratch = TestScratch("blobs");
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_NE(ContentProblem(scratch / "pipe", DigestOf("")), "");
  EXPECT_NE(ContentProblem(scratch, DigestOf("")), "");
  EXPECT_NE(ContentProblem(scratch / "none", DigestOf("")), "");
}

}  // namespace
}  // namespace oscar
