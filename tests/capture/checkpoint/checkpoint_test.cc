// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files are a model's weights, and that index and shards agree.
#include "capture/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include "linalg/error.h"
#include "tests/capture/checkpoint/checkpoint_files.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOne = "model-00001-of-00002.safetensors";
constexpr const char* kTwo = "model-00002-of-00002.safetensors";

// Two shards with tensors a and b; `map_b` is where the index says b is, as JSON.
fs::path Sharded(const std::string& map_b = std::string("\"") + kTwo + "\"") {
  const fs::path dir = TestScratch("checkpoint");
  WriteOneTensor(dir / kOne, "a", 'a');
  WriteOneTensor(dir / kTwo, "b", 'b');
  WriteText(dir / "model.safetensors.index.json",
            std::string("{\"weight_map\":{\"a\":\"") + kOne + "\",\"b\":" + map_b + "}}");
  return dir;
}

std::string OpenRefusal(const fs::path& directory) {
  try {
    Checkpoint::Open(directory);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Checkpoint, OpensShards) {
  const Checkpoint checkpoint = Checkpoint::Open(Sharded());
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(checkpoint.files(), (std::vector<std::string>{kOne, kTwo}));
  EXPECT_EQ(checkpoint.file_index("b"), 1u);
  EXPECT_EQ(checkpoint.total_bytes(), 32u);
  EXPECT_EQ(checkpoint.info("b").shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(static_cast<char>(checkpoint.tensor("b").data[15]), 'b');
  checkpoint.Release("b");
  EXPECT_FALSE(checkpoint.Contains("c"));
  EXPECT_THROW(checkpoint.info("c"), InputError);
  EXPECT_THROW(checkpoint.tensor("c"), InputError);
}

TEST(Checkpoint, SingleFileGoesBeforeAnIndex) {
  const fs::path dir = Sharded();
  WriteOneTensor(dir / "model.safetensors", "single", 's');
  EXPECT_EQ(Checkpoint::Open(dir).names(), std::vector<std::string>{"single"});
  EXPECT_EQ(Checkpoint::Open(dir).files(), std::vector<std::string>{"model.safetensors"});
}

TEST(Checkpoint, ShardsMayBeLinksAsInTheCache) {
  const fs::path dir = Sharded();
  fs::create_directories(dir.parent_path() / "blobs");
  fs::rename(dir / kTwo, dir.parent_path() / "blobs/etag");
  fs::create_symlink("../blobs/etag", dir / kTwo);
  EXPECT_EQ(OpenRefusal(dir), "");
  fs::remove(dir.parent_path() / "blobs/etag");
  EXPECT_NE(OpenRefusal(dir).find("is a link to a file that is not there"), std::string::npos);
}

TEST(Checkpoint, IndexMayOnlyNameFilesBesideIt) {
  const fs::path outside = Sharded().parent_path() / kTwo;
  WriteOneTensor(outside, "b", 'b');
  const std::string name(kTwo);
  for (const std::string& value :
       {"\"../" + name + "\"", "\"" + outside.string() + "\"", "\"sub/" + name + "\"",
        "\"..\\\\" + name + "\"", "\"" + name + "\\u0000.txt\"", std::string("\"\""),
        std::string("\"..\""), std::string("\".\""), "\"https://example.com/" + name + "\"",
        std::string("1"), std::string("null"), std::string("[]"), "\"./" + name + "\"",
        std::string("\"config.json\"")}) {
    const std::string refusal = OpenRefusal(Sharded(value));
    EXPECT_NE(refusal.find("tensor \"b\""), refusal.npos) << value << ": " << refusal;
  }
}

TEST(Checkpoint, IndexAndShardsMustAgree) {
  EXPECT_NE(OpenRefusal(Sharded("\"" + std::string(kOne) + "\"")).find("does not hold it"),
            std::string::npos);
  fs::path dir = Sharded();
  WriteOneTensor(dir / kTwo, "a", 'x');  // both hold a, none b
  EXPECT_NE(OpenRefusal(dir).find("holds tensor \"a\""), std::string::npos) << OpenRefusal(dir);
  WriteOneTensor(dir / kTwo, "c", 'x');
  EXPECT_NE(OpenRefusal(dir).find("lists nowhere"), std::string::npos) << OpenRefusal(dir);
  fs::remove(dir / kTwo);
  EXPECT_NE(OpenRefusal(dir).find("is missing"), std::string::npos) << OpenRefusal(dir);
  fs::create_directory(dir / kTwo);
  EXPECT_NE(OpenRefusal(dir).find("is not a regular file"), std::string::npos) << OpenRefusal(dir);
}

TEST(Checkpoint, BrokenIndexes) {
  const fs::path dir = Sharded();
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("{\"weight_map\":{}}"),
        std::string("{\"weight_map\":[\"a\"]}"), std::string("[]"),
        "{\"metadata\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}",
        std::string("{\"weight_map\":{\"a\":\"") + kOne + "\",\"a\":\"" + kTwo + "\"}}"}) {
    WriteText(dir / "model.safetensors.index.json", text);
    EXPECT_NE(OpenRefusal(dir).find("model.safetensors.index.json"), std::string::npos);
  }
}

TEST(Checkpoint, SaysWhatIsThereInstead) {
  const fs::path dir = TestScratch("checkpoint");
  EXPECT_NE(OpenRefusal(dir).find("no weights"), std::string::npos);
  WriteText(dir / "pytorch_model.bin", "x");
  EXPECT_NE(OpenRefusal(dir).find("pickle"), std::string::npos);
  EXPECT_NE(OpenRefusal(dir / "none").find("not a directory"), std::string::npos);
}

}  // namespace
}  // namespace oscar
