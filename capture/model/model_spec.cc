// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/model_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "capture/model/config_reader.h"
#include "capture/model/families/families.h"

namespace oscar {
namespace {

const Family& FindFamily(ConfigReader& config) {
  const std::string model_type = config.String("model_type");
  const auto families = Families();
  const auto family = std::ranges::find(families, model_type, &Family::model_type);
  if (family == families.end()) {
    config.Fail("model_type", fmt::format("is not implemented. Supported: {}",
                                          fmt::join(SupportedModelTypes(), ", ")));
  }
  if (const Json* names = config.Find("architectures")) {
    if (!names->is_array() || names->size() != 1 || names->front() != family->architecture) {
      config.Fail("architectures",
                  fmt::format("is not implemented. Supported: [\"{}\"]", family->architecture));
    }
  }
  return *family;
}

// Only the stored tensors decide how weights are read; the config's word for it is kept for the
// record.
std::string ReadConfigDType(ConfigReader& config) {
  const std::string old_spelling = config.String("torch_dtype", "");
  const std::string dtype = config.String("dtype", old_spelling);
  if (!old_spelling.empty() && old_spelling != dtype)
    config.Fail("torch_dtype", "contradicts dtype");
  if (!dtype.empty() && dtype != "bfloat16" && dtype != "float16" && dtype != "float32") {
    config.Fail(config.Has("dtype") ? "dtype" : "torch_dtype",
                "is not implemented. Supported: bfloat16, float16, float32");
  }
  return dtype;
}

}  // namespace

ModelSpec ReadModelSpec(const Json& json, const SpecOptions& options, std::string_view what) {
  ConfigReader config(json, std::string(what));
  const Family& family = FindFamily(config);
  if (config.Find("quantization_config") != nullptr) {
    config.Fail("quantization_config",
                "is not implemented: a weight format. Supported: plain BF16, F16, F32");
  }
  ModelSpec spec = family.read(config);
  spec.model_type = family.model_type;
  spec.config_dtype = ReadConfigDType(config);
  spec.ignored_config = config.Finish(options);
  return spec;
}

ModelSpec ReadModelSpec(const std::filesystem::path& model_directory, const SpecOptions& options) {
  const std::string path = (model_directory / "config.json").string();
  return ReadModelSpec(ReadJsonFile(path), options, path);
}

std::vector<std::string> SupportedModelTypes() {
  std::vector<std::string> names;
  for (const Family& family : Families()) names.emplace_back(family.model_type);
  return names;
}

std::vector<TensorNeed> LayerTensors(const LayerSpec& layer, bool attention_only) {
  std::vector<TensorNeed> needs;
  const auto add_norm = [&](const NormSpec& norm) { needs.push_back({norm.weight, {norm.size}}); };
  const auto add_linear = [&](const LinearSpec& linear) {
    needs.push_back({linear.weight, {linear.out_features, linear.in_features}});
    if (!linear.bias.empty()) needs.push_back({linear.bias, {linear.out_features}});
  };
  const AttentionSpec& attention = layer.attention;
  add_norm(layer.attention_norm);
  add_linear(attention.q);
  add_linear(attention.k);
  add_linear(attention.v);
  if (attention.qk_norm) {
    add_norm(attention.q_norm);
    add_norm(attention.k_norm);
  }
  if (attention_only) return needs;
  add_linear(attention.o);
  add_norm(layer.mlp_norm);
  add_linear(layer.mlp.gate);
  add_linear(layer.mlp.up);
  add_linear(layer.mlp.down);
  return needs;
}

std::vector<TensorNeed> AllTensors(const ModelSpec& spec) {
  std::vector<TensorNeed> needs = {{spec.embedding, {spec.vocab_size, spec.hidden_size}}};
  for (const LayerSpec& layer : spec.layers) {
    for (TensorNeed& need : LayerTensors(layer)) needs.push_back(std::move(need));
  }
  needs.push_back({spec.final_norm.weight, {spec.final_norm.size}});
  if (!spec.tied_head)
    needs.push_back({spec.head.weight, {spec.head.out_features, spec.head.in_features}});
  return needs;
}

}  // namespace oscar
