// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <functional>

#include "capture/checkpoint/model_config.h"
#include "capture/checkpoint/model_location.h"
#include "capture/checkpoint/weight_storage.h"
#include "linalg/base/error.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

void AddTensor(RawGguf& gguf, const std::string& name, const std::vector<uint64_t>& dims,
               uint32_t type = 0, uint64_t bytes = 0) {
  gguf.infos.push_back(RawInfo(name, dims, type, gguf.data.size()));
  uint64_t size = 4;
  for (const uint64_t dim : dims) size *= dim;
  gguf.data.resize(gguf.data.size() + (bytes > 0 ? bytes : size));
  gguf.data.resize((gguf.data.size() + 31) / 32 * 32);
}

std::string RawFloat(std::string_view key, float value) {
  return RawEntry(key, 6, RawNumber(value));
}

RawGguf Llama() {
  RawGguf gguf;
  gguf.entries = {RawEntry("general.architecture", "llama"),
                  RawEntry("llama.block_count", 1),
                  RawEntry("llama.context_length", 128),
                  RawEntry("llama.embedding_length", 32),
                  RawEntry("llama.feed_forward_length", 64),
                  RawEntry("llama.attention.head_count", 4),
                  RawEntry("llama.attention.head_count_kv", 2),
                  RawFloat("llama.attention.layer_norm_rms_epsilon", 1e-5F),
                  RawFloat("llama.rope.freq_base", 500000.F),
                  RawEntry("tokenizer.ggml.eos_token_id", 2)};
  AddTensor(gguf, "token_embd.weight", {32, 7}, 8, 7 * 34);
  AddTensor(gguf, "output_norm.weight", {32});
  AddTensor(gguf, "blk.0.attn_norm.weight", {32});
  AddTensor(gguf, "blk.0.attn_q.weight", {32, 32}, 2, 32 * 18);
  AddTensor(gguf, "blk.0.attn_k.weight", {32, 16});
  AddTensor(gguf, "blk.0.odd.weight", {5});
  return gguf;
}

TEST(GgufModel, IsAHuggingFaceModel) {
  const fs::path path = Llama().Write(TestScratch("gguf-model") / "m.gguf");
  const GgufModel model = GgufModel::Open(path);
  const Json config = model.Config();
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["rms_norm_eps"], 1e-5);  // the decimal value, not the float32 one
  EXPECT_EQ(config["rope_theta"], 500000.0);
  EXPECT_EQ(config["head_dim"], 8);
  EXPECT_EQ(config["vocab_size"], 7);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["eos_token_id"], 2);

  const Checkpoint checkpoint = Checkpoint::Open(path);
  const WeightStorage q = FindWeightStorage(checkpoint, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(q.shape, (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(q.scheme.name, "GGUF Q4_0");
  const std::vector<int64_t> head(q.gguf->row_order.begin() + 8, q.gguf->row_order.begin() + 16);
  EXPECT_EQ(head, (std::vector<int64_t>{8, 10, 12, 14, 9, 11, 13, 15}));
  const WeightStorage norm = FindWeightStorage(checkpoint, "model.norm.weight");
  EXPECT_TRUE(norm.plain());
  EXPECT_EQ(norm.parts[0].name, "output_norm.weight");
  EXPECT_TRUE(checkpoint.Contains("blk.0.odd.weight"));  // no rule maps this name
  EXPECT_EQ(checkpoint.files(), std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(ModelConfigName(path), path.string());
}

TEST(GgufModel, IsFoundInADirectory) {
  const fs::path scratch = TestScratch("gguf-found");
  const fs::path path = Llama().Write(scratch / "a.gguf");
  EXPECT_EQ(ResolveModel(path.string()).directory, path);
  EXPECT_EQ(ResolveModel(path.string()).id, "a");
  EXPECT_EQ(ResolveModel(scratch.string()).directory, path);
  Llama().Write(scratch / "mmproj-a.gguf");
  EXPECT_EQ(ResolveModel(scratch.string()).directory, path);
  Llama().Write(scratch / "b.gguf");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { ResolveModel(scratch.string()); }), "a.gguf, b.gguf"));
}

TEST(GgufModel, IsReadFromASplitSet) {
  const fs::path scratch = TestScratch("gguf-split");
  const auto split = [](RawGguf& gguf, uint16_t number) {
    gguf.entries.push_back(RawEntry("split.no", 2, RawNumber(number)));
    gguf.entries.push_back(RawEntry("split.count", 2, RawNumber<uint16_t>(2)));
    gguf.entries.push_back(RawEntry("split.tensors.count", 5, RawNumber<int32_t>(7)));
  };
  RawGguf first = Llama(), second;
  split(first, 0);
  split(second, 1);
  AddTensor(second, "blk.0.attn_v.weight", {32, 16});
  const fs::path one = first.Write(scratch / "m-00001-of-00002.gguf");
  const auto refused = [](const fs::path& path, const std::string& words) {
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { GgufModel::Open(path); }), words));
  };
  refused(one, "m-00002-of-00002.gguf is missing");
  const fs::path two = second.Write(scratch / "m-00002-of-00002.gguf");
  const Checkpoint checkpoint = Checkpoint::Open(one);
  EXPECT_EQ(checkpoint.files(),
            (std::vector<std::string>{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}));
  EXPECT_EQ(checkpoint.file_index("blk.0.attn_v.weight"), 1U);
  EXPECT_TRUE(checkpoint.Contains("model.layers.0.self_attn.v_proj.weight"));
  EXPECT_EQ(ResolveModel(scratch.string()).directory, one);
  refused(two, "give the first");
  refused(first.Write(scratch / "other.gguf"), "its name must end in -00001-of-00002.gguf");
  AddTensor(second, "blk.0.attn_norm.weight", {32});
  second.Write(two);
  refused(one, "is also in another file");
  second.entries.clear();
  second.Write(two);
  refused(one, "belong to different models");
}

TEST(GgufModel, SaysWhatIsNotSupported) {
  const fs::path scratch = TestScratch("gguf-refused");
  const auto refused = [&](const std::function<void(RawGguf&)>& change, const std::string& words) {
    RawGguf gguf = Llama();
    change(gguf);
    const fs::path path = gguf.Write(scratch / "m.gguf");
    const std::string error = ErrorOf<InputError>([&] {
      const GgufModel model = GgufModel::Open(path);
      (void)model.Config();
      (void)model.Weights();
    });
    EXPECT_TRUE(Says(error, words));
    EXPECT_TRUE(Says(error, "m.gguf"));
  };
  const auto entry = [](size_t i, const std::string& raw) {
    return [i, raw](RawGguf& gguf) { gguf.entries.at(i) = raw; };
  };
  refused(entry(0, RawEntry("general.architecture", "rwkv7")), "\"rwkv7\" is not implemented");
  refused(entry(0, RawEntry("general.name", "x")), "general.architecture is missing");
  refused(entry(1, RawEntry("llama.block_count", 5000)), "must be from 1 to 4096");
  refused(entry(2, RawEntry("x", 1)), "llama.context_length is missing");
  refused(entry(5, RawEntry("llama.attention.head_count", 5)), "must divide");
  refused(entry(5, RawEntry("llama.attention.head_count", 32)), "heads of an even size");
  refused(entry(5, RawEntry("llama.attention.head_count", "4")), "expected an integer");
  refused(
      entry(6, RawEntry("llama.attention.head_count_kv", 9,
                        RawNumber<uint32_t>(4) + RawNumber<uint64_t>(2) + RawNumber<uint64_t>(9))),
      "has 2 values, but the model has 1");
  refused(entry(9, RawEntry("llama.rope.scaling.type", "ntk")), "ntk is not implemented");
  refused(
      [](RawGguf& gguf) {
        AddTensor(gguf, "blk.0.attn_v.weight", {256, 1}, 16, 66);
      },
      "IQ2_XXS, which is not implemented");
  refused(
      [](RawGguf& gguf) {
        AddTensor(gguf, "blk.0.ffn_up_exps.weight", {32, 8});
      },
      "three dimensions");
  refused(
      [](RawGguf& gguf) {
        gguf.infos[0] = RawInfo("no.weight", {32, 7}, 8, 0);
      },
      "token_embd.weight");
}

}  // namespace
}  // namespace oscar
