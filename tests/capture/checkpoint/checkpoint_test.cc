// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests which files hold a model's weights, and that an index and its shards must agree.
#include "capture/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "capture/checkpoint/weight_files.h"
#include "linalg/base/error.h"
#include "tests/capture/checkpoint/checkpoint_files.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOne = "model-00001-of-00002.safetensors";
constexpr const char* kTwo = "model-00002-of-00002.safetensors";

// Writes two shards with tensors a and b. `map_b`: the shard of b in the index, as JSON.
fs::path Sharded(const std::string& map_b = std::string("\"") + kTwo + "\"") {
  const fs::path dir = TestScratch("checkpoint");
  WriteOneTensor(dir / kOne, "a", 'a');
  WriteOneTensor(dir / kTwo, "b", 'b');
  WriteText(dir / "model.safetensors.index.json",
            std::string("{\"weight_map\":{\"a\":\"") + kOne + "\",\"b\":" + map_b + "}}");
  return dir;
}

std::string OpenRefusal(const fs::path& directory) {
  return ErrorOf<InputError>([&] { Checkpoint::Open(directory); });
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
  EXPECT_TRUE(Says(OpenRefusal(dir), "is a link to a file that does not exist"));
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
    EXPECT_TRUE(Says(refusal, "tensor \"b\"")) << value;
  }
}

TEST(Checkpoint, IndexAndShardsMustAgree) {
  EXPECT_TRUE(Says(OpenRefusal(Sharded("\"" + std::string(kOne) + "\"")), "does not contain it"));
  fs::path dir = Sharded();
  WriteOneTensor(dir / kTwo, "a", 'x');  // both files contain a, neither contains b
  EXPECT_TRUE(Says(OpenRefusal(dir), "contains tensor \"a\""));
  WriteOneTensor(dir / kTwo, "c", 'x');
  EXPECT_TRUE(Says(OpenRefusal(dir), "does not list"));
  fs::remove(dir / kTwo);
  EXPECT_TRUE(Says(OpenRefusal(dir), "is missing"));
  fs::create_directory(dir / kTwo);
  EXPECT_TRUE(Says(OpenRefusal(dir), "is not a regular file"));
}

TEST(Checkpoint, BrokenIndexes) {
  const fs::path dir = Sharded();
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("{\"weight_map\":{}}"),
        std::string("{\"weight_map\":[\"a\"]}"), std::string("[]"),
        "{\"metadata\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}",
        std::string("{\"weight_map\":{\"a\":\"") + kOne + "\",\"a\":\"" + kTwo + "\"}}"}) {
    WriteText(dir / "model.safetensors.index.json", text);
    EXPECT_TRUE(Says(OpenRefusal(dir), "model.safetensors.index.json"));
  }
}

TEST(Checkpoint, SaysWhatIsThereInstead) {
  const fs::path dir = TestScratch("checkpoint");
  EXPECT_TRUE(Says(OpenRefusal(dir), "no weights"));
  WriteText(dir / "pytorch_model.bin", "x");
  EXPECT_TRUE(Says(OpenRefusal(dir), "pickle"));
  EXPECT_TRUE(Says(OpenRefusal(dir / "none"), "not a directory"));
  for (const auto& [file, way] :
       {std::pair("other.safetensors",
                  "if that file has all weights, rename it to model.safetensors"),
        {"model.Q4_1.gguf", "it contains the GGUF file model.Q4_1.gguf"},
        {"consolidated.safetensors", "Mistral's own format"},
        {"model-00001-of-00002.safetensors", "1 shards without the model.safetensors.index.json"},
        {"adapter_config.json", "LoRA adapter, so merge it into its base model"}}) {
    WriteText(dir / file, "x");
    EXPECT_TRUE(Says(OpenRefusal(dir), way));
    if (std::string(file).starts_with("other")) fs::remove(dir / file);
  }
}

std::vector<std::string> NamesOf(std::initializer_list<const char*> stored) {
  const fs::path dir = TestScratch("names");
  std::string header;
  for (const char* name : stored) {
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[],"data_offsets":[{},{}]}})",
                          header.empty() ? "{" : ",", name, header.empty() ? 0 : 1,
                          header.empty() ? 1 : 2);
  }
  WriteText(dir / "model.safetensors", SafetensorsBytes(header + "}", "ab"));
  const Checkpoint checkpoint = Checkpoint::Open(dir);
  for (const std::string& name : checkpoint.names())
    EXPECT_EQ(checkpoint.tensor(name).data.size(), 1u);
  return checkpoint.names();
}

// Expects names to be normalized as in transformers, vLLM and SGLang.
TEST(Checkpoint, PrefixesOfWrappersAndHeadlessModels) {
  const std::vector<std::string> own = {"lm_head.weight", "model.layers.0.a"};
  EXPECT_EQ(NamesOf({"lm_head.weight", "model.layers.0.a"}), own);
  EXPECT_EQ(NamesOf({"lm_head.weight", "layers.0.a"}), own);
  EXPECT_EQ(NamesOf({"module.lm_head.weight", "module.model.layers.0.a"}), own);
  EXPECT_EQ(NamesOf({"_orig_mod.lm_head.weight", "_orig_mod.model.layers.0._orig_mod.a"}), own);
  EXPECT_EQ(NamesOf({"module._orig_mod.lm_head.weight", "module._orig_mod.layers.0.a"}), own);
  EXPECT_EQ(NamesOf({"_fsdp_wrapped_module.lm_head.weight",
                     "_fsdp_wrapped_module.model.layers.0._checkpoint_wrapped_module.a"}),
            own);
  EXPECT_EQ(NamesOf({"language_model.layers.0.a", "visual.b"}),
            (std::vector<std::string>{"model.language_model.layers.0.a", "model.visual.b"}));
  EXPECT_EQ(NamesOf({"language_model.model.layers.0.a", "visual.b"}),
            (std::vector<std::string>{"language_model.model.layers.0.a", "visual.b"}));
  EXPECT_EQ(NamesOf({"a_orig_mod.b", "my.module.c"}),
            (std::vector<std::string>{"a_orig_mod.b", "my.module.c"}));
  EXPECT_THROW(NamesOf({"module.a", "a"}), InputError);
}

TEST(Checkpoint, AStrayFileBesideAnIndexIsNamed) {
  const fs::path dir = Sharded();
  EXPECT_EQ(WhyStray(dir, {"a"}), "");
  WriteOneTensor(dir / "model.safetensors", "single", 's');
  EXPECT_TRUE(Says(WhyStray(dir, {"single"}), "lacks tensor \"a\", which they have"));
  EXPECT_EQ(WhyStray(dir, {"a", "b", "c"}), "");  // contains all of the shards' tensors
  fs::remove(dir / kTwo);
  EXPECT_EQ(WhyStray(dir, {"single"}), "");
}

}  // namespace
}  // namespace oscar
