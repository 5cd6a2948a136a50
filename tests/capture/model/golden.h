// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a model directory over the tokens of its golden file, and measures the error of every
// tensor. Golden files hold layer.<i>.{q,k,v,attn_out}, logits (or logits_last64) and input_ids,
// computed by transformers 5 in float32 from the same stored weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "capture/model/run/layer_loop.h"

namespace oscar {

struct GoldenRun {
  std::string config = "config.json", golden = "golden.safetensors";
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  LoopOptions options;
  const Json* config_json = nullptr;   // replaces the file `config`
  std::filesystem::path weights = {};  // replaces the directory's weights
  size_t copies = 1;                   // sequences with the same tokens; compares the last one
};

// |x - reference| / |reference| (Frobenius) of every golden tensor, by name.
struct GoldenErrors {
  std::map<std::string, double> of;
  std::string worst_name;
  double worst = 0;

  // Returns the largest error of one layer's q, k, v and attn_out.
  double Layer(size_t layer_index) const;
  double Logits() const;
};

// Returns all tensors that an observer receives, over all sequences, and "logits".
std::map<std::string, at::Tensor> RunTokens(const std::filesystem::path& weights,
                                            const Json& config,
                                            const std::vector<std::vector<int32_t>>& sequences,
                                            const GoldenRun& run = {});
GoldenErrors CompareWithGolden(const std::filesystem::path& model, const GoldenRun& run = {});

struct SilentObserver : LayerObserver {
  void OnAttention(const AttentionView&) override {}
};

// Keeps everything that an observer receives, on the CPU in float32, concatenated over sequences,
// with names such as "layer.0.q".
class KeepingObserver : public LayerObserver {
 public:
  void OnAttention(const AttentionView& view) override;
  void OnLinearAttention(const LayerSpec& layer, const at::Tensor& out) override;
  void OnLayerEnd(const LayerSpec& layer) override;
  std::map<std::string, at::Tensor> kept;

 private:
  std::map<std::string, std::vector<at::Tensor>> parts_;
};

// Returns a stored tensor as float32 on the CPU.
at::Tensor StoredTensor(const SafetensorsFile& file, const std::string& name);
double RelativeError(const at::Tensor& x, const at::Tensor& reference);

}  // namespace oscar
