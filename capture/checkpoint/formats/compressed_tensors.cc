// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// quant_method compressed-tensors (llm-compressor): groups of modules, each with its own weight
// format. `format` is at the top level, or in each group if the top level says mixed-precision. If
// several targets match a module, a name has priority over a regular expression, which has priority
// over a class ("Linear").
#include <fmt/format.h>

#include <array>
#include <utility>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {
namespace {

struct Strategy {
  std::string_view name;
  ScaleKind kind;
};
constexpr Strategy kStrategies[] = {{"tensor", ScaleKind::kTensor},
                                    {"channel", ScaleKind::kRow},
                                    {"group", ScaleKind::kGroup},
                                    {"tensor_group", ScaleKind::kGroup},
                                    {"block", ScaleKind::kBlock}};

void ReadScales(QuantizationFields& weights, WeightScheme& scheme) {
  const int64_t group_size = weights.Int("group_size", 0);
  const std::string strategy = weights.String("strategy", group_size > 0   ? "group"
                                                          : group_size < 0 ? "channel"
                                                                           : "tensor");
  const auto* found = std::ranges::find(kStrategies, strategy, &Strategy::name);
  if (found == std::end(kStrategies)) {
    weights.Fail("strategy",
                 "is not implemented. Supported: tensor, channel, group, tensor_group, block");
  }
  scheme.scales = found->kind;
  constexpr int64_t kLargest = int64_t{1} << 24;
  if (scheme.scales == ScaleKind::kGroup) {
    if (group_size < 1 || group_size > kLargest) weights.Fail("group_size", "must be above 0");
    scheme.group_size = group_size;
  }
  if (scheme.scales != ScaleKind::kBlock) return;
  const Json* block = weights.Find("block_structure");
  const bool fits = block != nullptr && block->is_array() && block->size() == 2 &&
                    (*block)[0].is_number_unsigned() && (*block)[1].is_number_unsigned() &&
                    (*block)[0] > 0 && (*block)[1] > 0 && (*block)[0] <= kLargest &&
                    (*block)[1] <= kLargest;
  if (!fits) weights.Fail("block_structure", "must be two numbers above 0");
  scheme.block_rows = (*block)[0].get<int64_t>();
  scheme.group_size = (*block)[1].get<int64_t>();
}

// Returns whether the weight needs a weight_g_idx. It does if columns were ordered by activation in
// "group" mode. The mode "weight" (static) only affected how scales were fitted, not how weights
// are stored.
bool ReadOrdered(QuantizationFields& weights) {
  const Json* order = weights.Find("actorder");
  if (order == nullptr || *order == false || *order == "weight" || *order == "static") return false;
  if (*order == true || *order == "group") return true;
  weights.Fail("actorder", "is not implemented. Supported: null, group, weight");
}

void RequireType(QuantizationFields& weights, const std::string& format, int bits,
                 std::string_view type) {
  if (weights.Int("num_bits", 8) != bits || weights.String("type", "int") != type) {
    weights.Fail("num_bits", fmt::format("and type do not fit {}, which needs {} bits of type {}",
                                         format, bits, type));
  }
}

void ReadFormat(QuantizationFields& weights, const std::string& format, WeightScheme& scheme) {
  const std::string type = weights.String("type", "int");
  if (format == "pack-quantized") {
    scheme.format = WeightFormat::kPacked;
    scheme.bits = static_cast<int>(weights.Int("num_bits", 8));
    if (type != "int" || scheme.bits < 1 || scheme.bits > 8)
      weights.Fail("num_bits", "must be 1 to 8 bits of type int in pack-quantized");
    if (scheme.scales == ScaleKind::kBlock ||
        (scheme.scales == ScaleKind::kTensor && !scheme.symmetric))
      weights.Fail("strategy", "is not implemented in pack-quantized");
  } else if (format == "int-quantized" || (format == "naive-quantized" && type == "int")) {
    scheme.format = WeightFormat::kScaled;
    scheme.code = DType::kI8;
    const int64_t bits = weights.Int("num_bits", 8);
    if (type != "int" || bits < 1 || bits > 8)
      weights.Fail("num_bits", fmt::format("must be 1 to 8 bits of type int in {}", format));
    scheme.bits = static_cast<int>(bits);
  } else if (format == "float-quantized" || format == "naive-quantized") {
    RequireType(weights, format, 8, "float");
    scheme.format = WeightFormat::kScaled;
    scheme.bits = 8;
  } else if (format == "nvfp4-pack-quantized" || format == "mxfp4-pack-quantized") {
    RequireType(weights, format, 4, "float");
    const bool nvfp4 = format.starts_with("nvfp4");
    scheme.format = nvfp4 ? WeightFormat::kNvfp4 : WeightFormat::kMxfp4;
    scheme.global_scale_divides = nvfp4;
    scheme.bits = 4;
    if (scheme.scales != ScaleKind::kGroup || scheme.group_size != (nvfp4 ? 16 : 32))
      weights.Fail("group_size", fmt::format("must be {} in {}", nvfp4 ? 16 : 32, format));
  } else {
    weights.Fail("format",
                 fmt::format("{} is not implemented. Supported: pack-quantized, int-quantized, "
                             "float-quantized, naive-quantized, nvfp4-pack-quantized, "
                             "mxfp4-pack-quantized, dense",
                             format.empty() ? "(missing)" : format));
  }
}

WeightScheme ReadScheme(QuantizationFields& weights, const std::string& format) {
  WeightScheme scheme;
  scheme.symmetric = weights.Bool("symmetric", true);
  if (weights.Bool("dynamic", false)) weights.Fail("dynamic", "is not implemented for weights");
  ReadScales(weights, scheme);
  ReadFormat(weights, format, scheme);
  scheme.ordered = ReadOrdered(weights);
  scheme.name = fmt::format("compressed-tensors {} {}-bit", format, scheme.bits);
  weights.Ignore({"observer", "observer_kwargs", "scale_dtype", "zp_dtype", "block_structure"});
  return scheme;
}

void AddTargets(QuantizationFields& group, size_t scheme, QuantizationConfig& config) {
  const std::vector<std::string> targets = group.Strings("targets");
  if (targets.empty()) group.Fail("targets", "must be a list of modules");
  for (const std::string& target : targets) {
    if (target == "Linear") {
      config.targets().AddAll(scheme, group.what());
    } else if (target.starts_with("re:")) {
      config.targets().AddRegex(target.substr(3), scheme, group.what());
    } else {
      config.targets().AddName(target, scheme, group.what());
    }
  }
}

void ReadGroup(const Json& json, const std::string& what, const std::string& top_format,
               QuantizationConfig& config) {
  QuantizationFields group(json, what);
  group.Ignore({"input_activations", "output_activations"});
  const std::string own_format = group.String("format", "");
  const std::string& format = own_format.empty() ? top_format : own_format;
  WeightScheme scheme;  // plain: only activations are quantized
  if (const Json* json_weights = group.Find("weights");
      json_weights != nullptr && format != "dense") {
    QuantizationFields weights(*json_weights, what + ".weights");
    scheme = ReadScheme(weights, format);
    for (const std::string& key : weights.Unread()) config.AddUnknownField("weights." + key);
  }
  AddTargets(group, config.AddScheme(scheme), config);
  for (const std::string& key : group.Unread()) config.AddUnknownField("config_groups: " + key);
}

}  // namespace

void ReadCompressedTensorsConfig(QuantizationFields& fields, QuantizationConfig& config) {
  const std::string format = fields.String("format", "");
  if (const Json* sparsity = fields.Find("sparsity_config"); sparsity != nullptr) {
    const bool dense = sparsity->is_object() && sparsity->value("format", Json("dense")) == "dense";
    if (!dense) fields.Fail("sparsity_config", "is not implemented: sparse weights");
  }
  fields.Refuse("transform_config", "rotated weights");
  fields.Refuse("moe_sparsity_config", "sparse experts");
  // The types of the stored tensors already show the quantization_status.
  fields.Ignore({"quantization_status", "global_compression_ratio", "kv_cache_scheme", "version"});
  for (const std::string& module : fields.Strings("ignore")) {
    if (module.starts_with("re:")) {
      config.excluded().AddRegex(module.substr(3), 0, fields.what() + ".ignore");
    } else {
      config.excluded().AddName(module, 0, fields.what() + ".ignore");
    }
  }
  const Json* groups = fields.Find("config_groups");
  if (groups == nullptr) return;  // only the KV cache is quantized
  if (!groups->is_object()) fields.Fail("config_groups", "must be an object of groups");
  for (const auto& [name, group] : groups->items())
    ReadGroup(group, fmt::format("{}.config_groups.{}", fields.what(), name), format, config);
}

}  // namespace oscar
