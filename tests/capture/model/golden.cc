// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/model/golden.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "capture/model/run/device.h"

namespace oscar {

void KeepingObserver::OnAttention(const AttentionView& view) {
  const auto keep = [&](const char* name, const at::Tensor& x) {
    parts_[fmt::format("layer.{}.{}", view.layer.layer_id, name)].push_back(
        x.to(at::kCPU, at::kFloat, false, true));
  };
  keep("q", view.q);
  keep("k", view.k);
  keep("v", view.v);
  keep("attn_out", view.attn_out);
  if (!view.c_kv.defined()) return;
  keep("c_kv", view.c_kv);
  keep("k_pe", view.k_pe);
}

void KeepingObserver::OnLinearAttention(const LayerSpec& layer, const at::Tensor& out) {
  parts_[fmt::format("layer.{}.linear_attn_out", layer.layer_id)].push_back(
      out.to(at::kCPU, at::kFloat, false, true));
}

void KeepingObserver::OnLayerEnd(const LayerSpec&) {
  for (auto& [name, parts] : parts_) kept[name] = at::cat(parts);
  parts_.clear();
}

at::Tensor StoredTensor(const SafetensorsFile& file, const std::string& name) {
  const TensorView view = file.tensor(name);
  const at::Tensor x =
      at::empty(view.shape, view.dtype == DType::kI32 ? at::kInt : ToScalarType(view.dtype, name));
  std::memcpy(x.data_ptr(), view.data.data(), view.data.size());
  return x.to(at::kFloat);
}

double RelativeError(const at::Tensor& x, const at::Tensor& reference) {
  const auto norm = [](const at::Tensor& t) {
    return at::linalg_vector_norm(t.to(at::kDouble)).item<double>();
  };
  return norm(x.to(at::kDouble).sub(reference)) / norm(reference);
}

double GoldenErrors::Layer(size_t layer_index) const {
  double largest = 0;
  for (const char* name : {"q", "k", "v", "attn_out"}) {
    largest = std::max(largest, of.at(fmt::format("layer.{}.{}", layer_index, name)));
  }
  return largest;
}

double GoldenErrors::Logits() const {
  return of.contains("logits") ? of.at("logits") : of.at("logits_last64");
}

std::map<std::string, at::Tensor> RunTokens(const std::filesystem::path& weights,
                                            const Json& config,
                                            const std::vector<std::vector<int32_t>>& sequences,
                                            const GoldenRun& run) {
  const Checkpoint checkpoint = Checkpoint::Open(weights);
  const ModelSpec spec = ReadModelSpec(config, {.checkpoint = &checkpoint});
  CheckTensors(spec, checkpoint);
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(std::ssize(sequence));
  LoopOptions options = run.options;
  options.token_ids = &sequences;
  const LayerLoop loop(checkpoint, spec, run.device, run.dtype, options);
  at::Tensor hidden = loop.Embed(sequences);
  KeepingObserver observer;
  loop.Run(hidden, lengths, 0, observer, [](size_t) { return true; });
  observer.OnLayerEnd(spec.layers.back());  // for layers after the last one with a cache
  observer.kept["logits"] = loop.Logits(hidden).to(at::kCPU, at::kFloat);
  return observer.kept;
}

GoldenErrors CompareWithGolden(const std::filesystem::path& model, const GoldenRun& run) {
  const Json config =
      run.config_json == nullptr ? ReadJsonFile((model / run.config).string()) : *run.config_json;
  const SafetensorsFile golden = SafetensorsFile::Open(model / run.golden);
  const TensorView stored_ids = golden.tensor("input_ids");
  std::vector<int32_t> ids(static_cast<size_t>(stored_ids.shape.at(0)));
  std::memcpy(ids.data(), stored_ids.data.data(), stored_ids.data.size());
  const auto length = static_cast<int64_t>(ids.size());
  const std::map<std::string, at::Tensor> kept =
      RunTokens(run.weights.empty() ? model : run.weights, config,
                std::vector<std::vector<int32_t>>(run.copies, ids), run);

  GoldenErrors errors;
  for (const auto& [name, info] : golden.tensors()) {
    at::Tensor mine;
    if (kept.contains(name)) mine = kept.at(name);
    if (name == "logits_last64") mine = kept.at("logits").slice(0, -64);
    if (!mine.defined()) continue;
    if (name != "logits_last64") mine = mine.narrow(0, mine.size(0) - length, length);
    const at::Tensor reference = StoredTensor(golden, name);
    const double error = mine.sizes() == reference.sizes() ? RelativeError(mine, reference) : 1e9;
    errors.of[name] = error;
    if (!(error <= errors.worst)) {
      errors.worst = error;
      errors.worst_name = name;
    }
  }
  return errors;
}

}  // namespace oscar
