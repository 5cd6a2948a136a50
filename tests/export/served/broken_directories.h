// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Directories that are silently wrong, each in one way; and what they are made with.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/export/served/served_sample.h"

namespace oscar {

using Make = std::function<void(const std::filesystem::path& directory)>;

struct BrokenDirectory {
  const char* check;  // that finds it
  unsigned runtime;
  Make make;
};

// The sound one, changed.
inline Make Changed(ServedSample sample, const std::function<void(ServedSample&)>& change) {
  change(sample);
  return [sample](const std::filesystem::path& directory) { WriteServed(directory, sample); };
}
inline Make Of(const std::function<void(ServedSample&)>& change) {
  return Changed(SoundSample(), change);
}
inline Make OfModelOpt(const std::function<void(ServedSample&)>& change) {
  return Changed(ModelOptSample(), change);
}
inline Make OfParam(const std::function<void(Json&)>& change) {
  return Changed(ParamSample(), [&](ServedSample& sample) {
    EditServedText(sample, "kv_cache_scales.json", change);
  });
}
inline SampleTensor& Scale(ServedSample& sample, int64_t layer, const char* name) {
  return sample.tensors().at("model.layers." + std::to_string(layer) + ".self_attn." + name);
}

// A pair of rotation files beside a config.json.
inline Make Pair(std::vector<SglangChoiceLayer> layers, SglangVersion version = SglangVersion::kV1,
                 const Make& more = {}) {
  return [=](const std::filesystem::path& directory) {
    ServedSample sample{.config = ServedConfig(), .files = {}, .texts = {}};
    WriteServed(directory, sample);
    WriteServedPair(directory, layers, version);
    if (more) more(directory);
  };
}
inline std::vector<SglangChoiceLayer> Rotations(const std::vector<int64_t>& ids,
                                                int64_t dim = kServedDim) {
  std::vector<SglangChoiceLayer> layers;
  for (const int64_t id : ids) layers.push_back(ServedRotation(id, dim));
  return layers;
}
inline std::vector<SglangChoiceLayer> Centred() {
  std::vector<SglangChoiceLayer> layers = Rotations(AllServedLayers());
  for (SglangChoiceLayer& layer : layers)
    layer.k_mean = std::make_shared<const FloatTensor>(
        FloatTensor{{kServedHeads, kServedDim}, std::vector<float>(8, 0.5F)});
  return layers;
}

inline std::vector<SglangChoiceLayer> TurningKeysAlone() {
  std::vector<SglangChoiceLayer> layers;
  for (const int64_t id : AllServedLayers())
    layers.push_back(ServedRotation(id, kServedDim, /*values=*/false));
  return layers;
}
inline std::vector<SglangChoiceLayer> PerHead() {
  std::vector<SglangChoiceLayer> layers = Rotations(AllServedLayers());
  for (SglangChoiceLayer& layer : layers) layer.k = MatrixPerHead(layer.k, kServedHeads);
  return layers;
}

inline Make Gguf(const std::function<void(ServedGgufSample&)>& change,
                 ServedGgufSample sample = GgufModel(), const char* name = "model.gguf") {
  change(sample);
  return [=](const std::filesystem::path& directory) {
    std::filesystem::create_directories(directory);
    WriteGguf(directory / name, sample.entries, sample.tensors);
  };
}
inline Make Both(const Make& one, const Make& other) {
  return [=](const std::filesystem::path& directory) {
    one(directory);
    other(directory);
  };
}
inline void AddRotations(ServedGgufSample& gguf, const std::vector<int64_t>& k,
                         const std::vector<int64_t>& v, int64_t dim = 4) {
  for (const int64_t id : k)
    gguf.tensors.push_back(GgufRotation(id, 'k', ServedMatrix({dim, dim})));
  for (const int64_t id : v)
    gguf.tensors.push_back(GgufRotation(id, 'v', ServedMatrix({dim, dim})));
}

inline Make Genai(const std::function<void(Json&)>& change, Json config = ServedConfig()) {
  Json scales = {
      {"scales", {{"k_scales", {0.1, 0.2, 0.3, 0.4}}, {"v_scales", {0.1, 0.2, 0.3, 0.4}}}},
      {"layer_ids", {0, 1, 2, 3}}};
  change(scales);
  ServedSample sample{.config = std::move(config), .files = {}, .texts = {}};
  sample.texts["kv_scales.json"] = scales.dump();
  return [sample](const std::filesystem::path& directory) { WriteServed(directory, sample); };
}

// Qwen3.5 with attention in every other layer.
inline ServedSample Hybrid(const char* k = ".attn.k_scale", const char* v = ".attn.v_scale",
                           const std::vector<int64_t>& layers = {1, 3}) {
  ServedSample sample = SoundSample();
  sample.tensors().clear();
  sample.config["model_type"] = "qwen3_5_text";
  sample.config["layer_types"] = {"linear_attention", "full_attention", "linear_attention",
                                  "full_attention"};
  sample.Weights("model.layers.", {1, 3});
  sample.Scales(k, v, layers);
  return sample;
}

inline Make OuterScales(const std::function<void(Json&)>& change, Json config) {
  Json content = {{"format", "nvfp4_ds_mla_outer_scale_v1"},
                  {"num_layers", 78},
                  {"latent_dim", 512},
                  {"denominator", 2688.0},
                  {"scales", std::vector<double>(78, 0.01)}};
  change(content);
  ServedSample sample{.config = std::move(config), .files = {}, .texts = {}};
  sample.texts["mla_scales.json"] = content.dump();
  return [sample](const std::filesystem::path& directory) { WriteServed(directory, sample); };
}
inline Json LatentConfig() {
  Json config = ServedConfig();
  config["model_type"] = "glm_moe_dsa";
  config["num_hidden_layers"] = 78;
  config["kv_lora_rank"] = 512;
  return config;
}

std::vector<BrokenDirectory> BrokenDirectories();

}  // namespace oscar
