// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint directories for tests of what a runtime makes of them: a small one that is right, to
// be changed in memory and then written.
#pragma once

#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "capture/files/strict_json.h"
#include "export/formats/gguf_file.h"
#include "export/formats/sglang_choice.h"

namespace oscar {

struct SampleTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape = {};
  std::vector<float> values = {0.5F};  // of F32; of other types, bytes of zeros
};

inline constexpr int64_t kServedDim = 4, kServedHeads = 2, kServedLayers = 4;

struct ServedSample {
  Json config;
  std::map<std::string, std::map<std::string, SampleTensor>> files;  // by file and name
  std::map<std::string, std::string> texts;                          // other files

  std::map<std::string, SampleTensor>& tensors() { return files["model.safetensors"]; }
  void Weights(const std::string& prefix, const std::vector<int64_t>& layers) {
    for (const int64_t id : layers)
      for (const char* projection : {"q_proj", "k_proj", "v_proj", "o_proj"})
        tensors()[prefix + std::to_string(id) + ".self_attn." + projection + ".weight"] = {
            DType::kBF16, {2, 2}, {}};
  }
  // "model.layers.<id>.self_attn<k>" and <v>, 0.5 and more.
  void Scales(const std::string& k, const std::string& v, const std::vector<int64_t>& layers,
              const std::string& file = "model.safetensors") {
    for (const int64_t id : layers) {
      const std::string module = "model.layers." + std::to_string(id) + ".self_attn";
      const float value = 0.5F + static_cast<float>(id) / 8;
      files[file][module + k] = {.values = {value}};
      files[file][module + v] = {.values = {value / 2}};
    }
  }
  // An index of all files that there are.
  Json Index() const {
    Json map = Json::object();
    for (const auto& [file, tensors] : files)
      for (const auto& [name, tensor] : tensors) map[name] = file;
    return {{"metadata", Json::object()}, {"weight_map", map}};
  }
  Json& quantization() { return config["quantization_config"]; }
};

inline std::vector<int64_t> AllServedLayers() { return {0, 1, 2, 3}; }

// A Qwen3 of four layers.
inline Json ServedConfig() {
  return {{"architectures", {"Qwen3ForCausalLM"}},
          {"model_type", "qwen3"},
          {"hidden_act", "silu"},
          {"hidden_size", 8},
          {"intermediate_size", 16},
          {"num_hidden_layers", kServedLayers},
          {"num_attention_heads", 4},
          {"num_key_value_heads", kServedHeads},
          {"head_dim", kServedDim},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true},
          {"attention_bias", false},
          {"vocab_size", 16}};
}

// Scales of an FP8 cache as llm-compressor writes them.
inline ServedSample SoundSample() {
  ServedSample sample{.config = ServedConfig(), .files = {}, .texts = {}};
  sample.quantization() = {{"quant_method", "compressed-tensors"},
                           {"format", "dense"},
                           {"config_groups", Json::object()},
                           {"ignore", Json::array()},
                           {"kv_cache_scheme",
                            {{"num_bits", 8},
                             {"type", "float"},
                             {"strategy", "tensor"},
                             {"dynamic", false},
                             {"symmetric", true}}}};
  sample.Weights("model.layers.", AllServedLayers());
  sample.Scales(".k_scale", ".v_scale", AllServedLayers());
  return sample;
}

// As ModelOpt does.
inline ServedSample ModelOptSample() {
  ServedSample sample{.config = ServedConfig(), .files = {}, .texts = {}};
  sample.quantization() = {{"quant_method", "modelopt"}, {"kv_cache_quant_algo", "FP8"}};
  sample.texts["hf_quant_config.json"] =
      Json({{"producer", {{"name", "modelopt"}}},
            {"quantization", {{"quant_algo", Json()}, {"kv_cache_quant_algo", "FP8"}}}})
          .dump();
  sample.Weights("model.layers.", AllServedLayers());
  sample.Scales(".k_proj.k_scale", ".v_proj.v_scale", AllServedLayers());
  return sample;
}

// No quantization; scales are in SGLang's file.
inline ServedSample ParamSample() {
  ServedSample sample{.config = ServedConfig(), .files = {}, .texts = {}};
  sample.Weights("model.layers.", AllServedLayers());
  Json layers = Json::object();
  for (const int64_t id : AllServedLayers()) layers[std::to_string(id)] = 0.25;
  sample.texts["kv_cache_scales.json"] =
      Json({{"model_type", "qwen3"},
            {"kv_cache", {{"dtype", "float8_e4m3fn"}, {"scaling_factor", {{"0", layers}}}}}})
          .dump();
  return sample;
}

inline void EditServedText(ServedSample& sample, const std::string& name, const auto& change) {
  Json json = Json::parse(sample.texts.at(name));
  change(json);
  sample.texts[name] = json.dump();
}

inline void WriteServed(const std::filesystem::path& directory, const ServedSample& sample) {
  std::filesystem::create_directories(directory);
  if (!sample.config.is_null())
    WriteFileAtomically(directory / "config.json", sample.config.dump());
  for (const auto& [name, text] : sample.texts) WriteFileAtomically(directory / name, text);
  for (const auto& [file, tensors] : sample.files) {
    std::vector<SafetensorsWriter::Declaration> declarations;
    for (const auto& [name, tensor] : tensors)
      declarations.push_back({name, tensor.dtype, tensor.shape});
    SafetensorsWriter writer(directory / file, declarations, {});
    for (const auto& [name, tensor] : tensors) {
      int64_t count = 1;
      for (const int64_t size : tensor.shape) count *= size;
      std::vector<std::byte> bytes(static_cast<size_t>(count * DTypeBytes(tensor.dtype)));
      if (tensor.dtype == DType::kF32)
        std::memcpy(bytes.data(), tensor.values.data(),
                    std::min(bytes.size(), tensor.values.size() * sizeof(float)));
      writer.Write(name, bytes);
    }
    writer.Commit();
  }
}

inline FloatTensorPtr ServedMatrix(std::vector<int64_t> shape, bool rotates = true) {
  // A turn of the first two channels, or nothing, for every head.
  FloatTensor tensor{std::move(shape), {}};
  const int64_t d = tensor.shape.back();
  const int64_t heads = tensor.shape.size() > 2 ? tensor.shape[0] : 1;
  for (int64_t i = 0; i < heads * d * d; ++i)
    tensor.values.push_back(i % (d * d) % (d + 1) == 0 ? 1.F : 0.F);
  for (int64_t head = 0; rotates && head < heads; ++head) {
    float* at = tensor.values.data() + head * d * d;
    at[0] = at[d + 1] = 0.6F;
    at[1] = 0.8F;
    at[d] = -0.8F;
  }
  return std::make_shared<const FloatTensor>(std::move(tensor));
}

// The pair of .pt files of these layers, in a directory with config.json.
inline void WriteServedPair(const std::filesystem::path& directory,
                            std::vector<SglangChoiceLayer> layers, SglangVersion version) {
  SglangChoice choice;
  choice.layers = std::move(layers);
  choice.key_transform = "oscar";
  WriteSglangChoice(directory / "pair", choice, version);
  for (const auto& entry : std::filesystem::directory_iterator(directory / "pair"))
    std::filesystem::rename(entry.path(), directory / entry.path().filename());
  std::filesystem::remove(directory / "pair");
}

inline SglangChoiceLayer ServedRotation(int64_t id, int64_t dim = kServedDim, bool values = true) {
  return {.layer_id = id,
          .k = ServedMatrix({dim, dim}),
          .q = {},
          .k_mean = {},
          .v = ServedMatrix({dim, dim}, values),
          .num_kv_heads = kServedHeads};
}

// A GGUF of the model's four layers.
struct ServedGgufSample {
  std::vector<GgufEntry> entries = {
      {"general.architecture", std::string("qwen3")}, {"qwen3.block_count", uint32_t{4}},
      {"qwen3.embedding_length", uint32_t{8}},        {"qwen3.attention.head_count", uint32_t{4}},
      {"qwen3.attention.head_count_kv", uint32_t{2}}, {"qwen3.attention.key_length", uint32_t{4}},
      {"qwen3.attention.value_length", uint32_t{4}}};
  std::vector<GgufTensor> tensors = {};
};

inline ServedGgufSample GgufModel() {
  ServedGgufSample sample;
  for (const int64_t id : AllServedLayers())
    sample.tensors.push_back(
        {"blk." + std::to_string(id) + ".attn_k.weight", ServedMatrix({4, 4})});
  return sample;
}

inline GgufTensor GgufRotation(int64_t id, char side, FloatTensorPtr matrix) {
  return {"blk." + std::to_string(id) + ".attn_" + side + "_rot.weight", std::move(matrix)};
}

inline ServedGgufSample GgufMeans(int64_t width = kServedDim * kServedHeads, int64_t first = 0) {
  ServedGgufSample sample;
  sample.entries = {{"general.type", std::string("kv-mean-center")},
                    {"kv_mean_center.k_rot", false}};
  for (const int64_t id : AllServedLayers()) {
    FloatTensor mean{{width}, std::vector<float>(static_cast<size_t>(width), 0.25F)};
    sample.tensors.push_back({"kv_bar.blk." + std::to_string(first + id) + ".k",
                              std::make_shared<const FloatTensor>(std::move(mean))});
  }
  return sample;
}

}  // namespace oscar
