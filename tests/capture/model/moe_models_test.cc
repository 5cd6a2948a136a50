// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole models with experts in spellings that transformers does not write: fused experts, a second
// model_type, layers that predict further tokens; and what is counted and refused. The golden
// values are those of tests/data/families, so a spelling that changes a value shows.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "capture/dump/dump_reader.h"
#include "capture/dump/dump_writer.h"
#include "capture/model/run/attention_source.h"
#include "capture/model/run/dump_observer.h"
#include "linalg/base/error.h"
#include "tests/capture/model/golden.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// A changed copy of a family's folder, golden values included.
fs::path Changed(const std::string& family, const std::function<void(TensorMap&)>& change) {
  const fs::path from = TestData("families/" + family), to = TestScratch("moe_" + family);
  CopyWeights(from, to, change);
  for (const char* file : {"config.json", "config.legacy.json", "golden.safetensors"})
    copy_file(from / file, to / file, fs::copy_options::overwrite_existing);
  return to;
}

// gate_up_proj [E, 2I, H] and down_proj [E, H, I] out of the tensors of all experts.
void FuseExperts(TensorMap& tensors) {
  std::map<std::string, std::vector<StoredBytes>> fused;  // in the order of experts
  for (int64_t expert = 0;; ++expert) {
    bool found = false;
    const std::string middle = fmt::format(".mlp.experts.{}.", expert);
    for (auto it = tensors.begin(); it != tensors.end();) {
      const size_t at = it->first.find(middle);
      if (at == std::string::npos) {
        ++it;
        continue;
      }
      found = true;
      const std::string layer = it->first.substr(0, at),
                        name = it->first.substr(at + middle.size());
      const bool down = name == "down_proj.weight";
      // The map's order is down, gate, up: gate comes before up.
      fused[layer + (down ? ".mlp.experts.down_proj" : ".mlp.experts.gate_up_proj")].push_back(
          it->second);
      it = tensors.erase(it);
    }
    if (!found) break;
  }
  for (const auto& [name, parts] : fused) {
    StoredBytes all{parts[0].dtype, parts[0].shape, {}};
    const bool down = name.ends_with("down_proj");
    if (!down) all.shape[0] *= 2;
    all.shape.insert(all.shape.begin(), static_cast<int64_t>(parts.size() / (down ? 1 : 2)));
    for (const StoredBytes& part : parts)
      all.data.insert(all.data.end(), part.data.begin(), part.data.end());
    tensors[name] = all;
  }
}

TEST(MoeModels, FusedExpertsAreTheSameModel) {
  for (const char* family : {"qwen3_5_moe_text", "qwen3_moe", "glm4_moe", "deepseek_v3"}) {
    const fs::path model = Changed(family, FuseExperts);
    for (const int64_t expert_bytes : {int64_t{1}, int64_t{1} << 30}) {
      GoldenRun run;
      run.options.expert_bytes = expert_bytes;
      const GoldenErrors errors = CompareWithGolden(model, run);
      EXPECT_LT(errors.worst, 2e-5) << family << " " << errors.worst_name;
    }
  }
}

// Kimi-K2 is DeepSeek-V3 under another model_type; MiniMax spells its bias in two places.
TEST(MoeModels, OtherSpellings) {
  const fs::path kimi = TestData("families/deepseek_v3");
  Json config = ReadJsonFile((kimi / "config.legacy.json").string());
  config["model_type"] = "kimi_k2";
  GoldenRun run;
  run.config_json = &config;
  EXPECT_LT(CompareWithGolden(kimi, run).worst, 2e-5);

  const fs::path minimax = Changed("minimax_m2", [](TensorMap& tensors) {
    TensorMap renamed;
    for (const auto& [name, tensor] : tensors) {
      const size_t at = name.find("block_sparse_moe.e_score_correction_bias");
      renamed[at == std::string::npos
                  ? name
                  : name.substr(0, at) + "block_sparse_moe.gate.e_score_correction_bias"] = tensor;
    }
    tensors = renamed;
  });
  EXPECT_LT(CompareWithGolden(minimax).worst, 2e-5);
}

TEST(MoeModels, PredictionLayersAreSkippedByName) {
  const auto add = [](TensorMap& tensors) {
    const StoredBytes some = tensors.at("model.norm.weight");
    tensors["model.layers.3.eh_proj.weight"] = some;
    tensors["model.layers.3.self_attn.q_a_proj.weight"] = some;
  };
  EXPECT_LT(CompareWithGolden(Changed("deepseek_v3", add)).worst, 2e-5);
  EXPECT_LT(CompareWithGolden(Changed("glm4_moe", add)).worst, 2e-5);
  const auto stray = [](TensorMap& tensors) {
    tensors["model.layers.3.self_attn.q_a_proj.weight"] = tensors.at("model.norm.weight");
  };
  Json config = ReadJsonFile((TestData("families/deepseek_v3") / "config.json").string());
  config["num_nextn_predict_layers"] = 0;
  GoldenRun run;
  run.config_json = &config;
  EXPECT_THROW(CompareWithGolden(Changed("deepseek_v3", stray), run), InputError);
}

TEST(MoeModels, SparseAttentionIsRefusedWhereItWouldBegin) {
  const fs::path model = TestData("families/glm_moe_dsa");
  Json config = ReadJsonFile((model / "config.json").string());
  config["index_topk"] = 39;
  GoldenRun run;
  run.config_json = &config;
  try {
    CompareWithGolden(model, run);
    ADD_FAILURE() << "40 tokens ran";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("index_topk"), std::string::npos) << error.what();
  }
}

// Logits, outputs and hidden states are those of the expanded heads.
TEST(MoeModels, ObserversMaySeeLatentSpace) {
  const fs::path model = TestData("families/deepseek_v3");
  const Checkpoint checkpoint = Checkpoint::Open(model);
  const ModelSpec spec = ReadModelSpec(model);
  struct Logits : LayerObserver {
    void OnAttention(const AttentionView& view) override {
      const auto heads = [](const at::Tensor& x) { return x.transpose(0, 1); };
      at::Tensor all = at::matmul(heads(view.q), heads(view.k).transpose(1, 2));
      if (view.q_pe.defined()) all = all.add(at::matmul(heads(view.q_pe), view.k_pe.t()));
      logits.push_back(all);
      geometry.push_back(view.layer.attention.num_kv_heads);
      EXPECT_EQ(view.k.size(1), view.layer.attention.num_kv_heads);
      EXPECT_EQ(view.k.size(2), view.layer.attention.head_dim);
      EXPECT_EQ(view.attn_out.size(2), view.layer.attention.v_head_dim);
      EXPECT_TRUE(view.q.is_contiguous() && view.k.is_contiguous() && view.v.is_contiguous());
      EXPECT_EQ(view.kv_b.sizes(), at::IntArrayRef({4, 10 + 12, 16}));
    }
    std::vector<at::Tensor> logits;
    std::vector<int64_t> geometry;
  } expanded, latent;
  const std::vector<int32_t> ids = {5, 9, 11, 3, 60, 2, 41, 17};
  std::vector<at::Tensor> hidden;
  for (Logits* observer : {&expanded, &latent}) {
    LoopOptions options;
    options.in_latent_space = observer == &latent;
    const LayerLoop loop(checkpoint, spec, at::kCPU, at::kFloat, options);
    hidden.push_back(loop.Embed({ids}));
    loop.Run(hidden.back(), {8}, 0, *observer, [](size_t) { return true; });
  }
  EXPECT_EQ(expanded.geometry, std::vector<int64_t>(3, 4));
  EXPECT_EQ(latent.geometry, std::vector<int64_t>(3, 1));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT(RelativeError(latent.logits[i], expanded.logits[i]), 1e-5) << "layer " << i;
  EXPECT_LT(RelativeError(hidden[1], hidden[0]), 1e-5);
}

// Records all tensors that observers are shown of every sequence and layer, in order.
struct Shown : LayerObserver {
  void OnAttention(const AttentionView& view) override {
    for (const at::Tensor& x :
         {view.q, view.k, view.v, view.attn_out, view.c_kv, view.k_pe, view.q_pe, view.kv_b})
      tensors.push_back(x.clone());
  }
  std::vector<at::Tensor> tensors;
};

// A dump holds the latents beside the expanded heads, and what leads from one to the other, so that
// it shows in latent space what the model does, to the last bit where the model ran so.
TEST(MoeModels, DumpsHoldLatents) {
  const fs::path model = TestData("families/deepseek_v3"), path = TestScratch("latent") / "dump.h5";
  const Checkpoint checkpoint = Checkpoint::Open(model);
  const ModelSpec spec = ReadModelSpec(model);
  const SafetensorsFile golden = SafetensorsFile::Open(model / "golden.safetensors");
  const TensorView stored = golden.tensor("input_ids");
  std::vector<int32_t> ids(static_cast<size_t>(stored.shape.at(0)));
  std::memcpy(ids.data(), stored.data.data(), stored.data.size());
  LoopOptions in_latent_space;
  in_latent_space.in_latent_space = true;
  LoopOptions expanded = in_latent_space;
  expanded.show_expanded_heads = true;
  ModelSource source(checkpoint, spec, {ids}, at::kCPU, at::kFloat, expanded);
  {
    DumpWriter writer(path, {ids}, {});
    DumpObserver observer(writer, nullptr, at::kFloat);
    source.Run(0, observer, [](size_t) { return true; });
    writer.Commit({});
  }
  const auto dump = std::make_shared<DumpReader>(path);
  for (size_t i = 0; i < 3; ++i) {
    const DumpLayer& layer = dump->layers()[i];
    EXPECT_EQ(layer.latent_rank, spec.layers[i].attention.latent->rank);
    for (const DumpTensor tensor : {DumpTensor::kCKv, DumpTensor::kKPe, DumpTensor::kK}) {
      at::Tensor values = at::empty(layer.shape(tensor, std::ssize(ids)));
      dump->ReadRows(i, tensor, 0,
                     {static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()});
      const std::string name = fmt::format("layer.{}.{}", i, DumpTensorName(tensor));
      EXPECT_LT(RelativeError(values, StoredTensor(golden, name)), 2e-5) << name;
    }
  }
  Shown of_dump, of_model;
  const auto run = [](AttentionSource& from, Shown& shown) {
    from.Run(0, shown, [](size_t) { return true; });
  };
  DumpSource dumped(dump, at::kCPU, at::kFloat);
  ModelSource model_source(checkpoint, spec, {ids}, at::kCPU, at::kFloat, in_latent_space);
  run(dumped, of_dump);
  run(model_source, of_model);
  ASSERT_EQ(of_dump.tensors.size(), of_model.tensors.size());
  for (size_t i = 0; i < of_dump.tensors.size(); ++i) {
    ASSERT_EQ(of_dump.tensors[i].sizes(), of_model.tensors[i].sizes()) << i;
    EXPECT_TRUE(at::equal(of_dump.tensors[i], of_model.tensors[i])) << i;
  }
}

// Every layer tells how many tokens each expert got, all of them together top_k per token.
TEST(MoeModels, TokensPerExpertAreCounted) {
  const fs::path model = TestData("families/qwen3_next");
  const Checkpoint checkpoint = Checkpoint::Open(model);
  const ModelSpec spec = ReadModelSpec(model);
  const LayerLoop loop(checkpoint, spec, at::kCPU, at::kFloat);
  struct Counting : KeepingObserver {
    void OnExperts(const LayerSpec& layer, const std::vector<int64_t>& tokens) override {
      counts[layer.layer_id] = tokens;
    }
    std::map<int, std::vector<int64_t>> counts;
  } observer;
  const std::vector<int32_t> ids = {5, 9, 11, 3, 60, 2, 41};
  at::Tensor hidden = loop.Embed({ids, ids});
  loop.Run(hidden, {7, 7}, 0, observer, [](size_t) { return true; });
  ASSERT_EQ(observer.counts.size(), 4u);
  for (const auto& [layer_id, counts] : observer.counts) {
    EXPECT_EQ(counts.size(), 4u);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 14 * 2);
    // The same tokens twice choose the same experts twice.
    EXPECT_TRUE(std::ranges::all_of(counts, [](int64_t count) { return count % 2 == 0; }));
  }
}

}  // namespace
}  // namespace oscar
