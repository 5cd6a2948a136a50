// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// quant_method modelopt (NVIDIA Model Optimizer), in config.json, in hf_quant_config.json (the
// older place), or in both. Algorithms with AWQ or SQ in their names are refused: they also scale
// activations (pre_quant_scale), which changes the computation of the model.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "capture/checkpoint/formats/formats.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kSupported =
    "FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, and MIXED_PRECISION of these";
constexpr int64_t kModelOptBlock = 128;

WeightScheme SchemeOfAlgorithm(QuantizationFields& fields, const std::string& algorithm,
                               int64_t group_size) {
  WeightScheme scheme{.name = "modelopt " + algorithm, .bits = 8};
  std::string upper = algorithm;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  scheme.format = WeightFormat::kScaled;
  if (upper == "FP8") {
    scheme.scales = ScaleKind::kTensor;
  } else if (upper == "FP8_PER_CHANNEL_PER_TOKEN") {
    scheme.scales = ScaleKind::kRow;
  } else if (upper == "FP8_PB_WO") {
    scheme.scales = ScaleKind::kBlock;
    scheme.block_rows = scheme.group_size = kModelOptBlock;
    if (group_size != 0 && group_size != kModelOptBlock)
      fields.Fail("group_size", fmt::format("must be {} with {}", kModelOptBlock, algorithm));
  } else if (upper == "NVFP4" || upper == "W4A16_NVFP4") {
    scheme.format = WeightFormat::kNvfp4;
    scheme.bits = 4;
    scheme.scales = ScaleKind::kGroup;
    scheme.group_size = kNvfp4Group;
    if (group_size != 0 && group_size != kNvfp4Group)
      fields.Fail("group_size", fmt::format("must be {} with {}", kNvfp4Group, algorithm));
  } else {
    fields.Fail("quant_algo", fmt::format("{} is not implemented. Supported: {}",
                                          algorithm.empty() ? "(missing)" : algorithm, kSupported));
  }
  return scheme;
}

// Reads settings per module: {"model.layers.0.mlp.up_proj": {"quant_algo": "FP8"}}.
void ReadLayers(QuantizationFields& fields, QuantizationConfig& config) {
  const Json* layers = fields.Find("quantized_layers");
  if (layers == nullptr || !layers->is_object() || layers->empty())
    fields.Fail("quantized_layers", "must list the modules of MIXED_PRECISION");
  std::map<std::string, size_t> schemes;
  for (const auto& [module, json] : layers->items()) {
    QuantizationFields layer(json, fmt::format("{}.quantized_layers.{}", fields.what(), module));
    const std::string algorithm = layer.String("quant_algo", "");
    const int64_t group_size = layer.Int("group_size", 0);
    const std::string key = fmt::format("{}/{}", algorithm, group_size);
    if (!schemes.contains(key))
      schemes[key] = config.AddScheme(SchemeOfAlgorithm(layer, algorithm, group_size));
    config.targets().AddGlob(module, schemes[key], layer.what());
    // A name such as "m.mlp.experts." matches everything below it.
    if (!module.ends_with('*')) config.targets().AddName(module + ".", schemes[key], layer.what());
    layer.Ignore({"kv_cache_quant_algo"});
    for (const std::string& field : layer.Unread())
      config.AddUnknownField("quantized_layers: " + field);
  }
}

}  // namespace

void ReadModelOptConfig(QuantizationFields& fields, QuantizationConfig& config) {
  const std::string algorithm = fields.String("quant_algo", "");
  const std::string what = fields.what() + ".ignore";
  for (const char* key : {"ignore", "exclude_modules"}) {
    for (const std::string& module : fields.Strings(key))
      config.excluded().AddGlob(module, 0, what);
  }
  // config_groups repeats quant_algo and quantized_layers without naming the algorithm.
  fields.Ignore({"config_groups", "weights", "input_activations", "kv_cache_scheme",
                 "kv_cache_quant_algo", "kv_cache_quantized_layers", "kv_cache_schema_version",
                 "producer"});
  fields.Refuse("pre_quant_scale", "factors on activations");
  fields.Refuse("has_zero_point", "zero points");
  if (algorithm.empty() && fields.Find("config_groups") == nullptr) return;  // KV cache only
  if (algorithm == "MIXED_PRECISION") return ReadLayers(fields, config);
  fields.Ignore({"quantized_layers"});
  config.targets().AddAll(
      config.AddScheme(SchemeOfAlgorithm(fields, algorithm, fields.Int("group_size", 0))),
      fields.what());
}

Json ConfigOfModelOptFile(const Json& file, std::string_view what) {
  const Json& quantization = JsonMember(file, "quantization", what);
  if (!quantization.is_object())
    throw InputError(fmt::format("{}: quantization must be an object", what));
  Json config = quantization;
  config["quant_method"] = "modelopt";
  return config;
}

void CheckSameModelOpt(const Json& config, const std::string& what, const Json& converted) {
  const auto algorithm = [](const Json& object) {
    const auto found = object.is_object() ? object.find("quant_algo") : object.end();
    return !object.is_object() || found == object.end() ? Json() : *found;
  };
  if (algorithm(config) != algorithm(converted)) {
    throw InputError(fmt::format("hf_quant_config.json: quant_algo {} contradicts {}: {}",
                                 algorithm(converted).dump(), what, algorithm(config).dump()));
  }
}

}  // namespace oscar
