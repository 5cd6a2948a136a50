// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests whole models with experts in forms that transformers does not write: fused experts, a
// second model_type, layers for multi-token prediction. Also tests expert counts and refusals. The
// golden values come from tests/data/families, so a form that changes a value is noticed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "linalg/base/error.h"
#include "tests/capture/model/golden.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// Makes a changed copy of a family's folder, including its golden values.
fs::path Changed(const std::string& family, const std::function<void(TensorMap&)>& change) {
  const fs::path from = TestData("families/" + family), to = TestScratch("moe_" + family);
  CopyWeights(from, to, change);
  for (const char* file : {"config.json", "config.legacy.json", "golden.safetensors"})
    copy_file(from / file, to / file, fs::copy_options::overwrite_existing);
  return to;
}

// Fuses the tensors of all experts into gate_up_proj [E, 2I, H] and down_proj [E, H, I].
void FuseExperts(TensorMap& tensors) {
  std::map<std::string, std::vector<StoredBytes>> fused;  // ordered by expert
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
      // The map is ordered by name (down, gate, up), so gate is added before up.
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

// Kimi-K2 is DeepSeek-V3 with another model_type. MiniMax uses two names for its bias.
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
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { CompareWithGolden(model, run); }), "index_topk"));
}

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
    // The tokens occur twice, so each expert is chosen an even number of times.
    EXPECT_TRUE(std::ranges::all_of(counts, [](int64_t count) { return count % 2 == 0; }));
  }
}

}  // namespace
}  // namespace oscar
