// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GPTQ: codes [K, N] in int32 words along K, zero points [groups along K, N] in words along N,
// scales [groups along K, N], g_idx [K].
#include <fmt/format.h>

#include <optional>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {
namespace {

int64_t ReadBits(QuantizationFields& fields) {
  const int64_t bits = fields.Int("bits", 4);
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
    fields.Fail("bits", "is not implemented. Supported: 2, 3, 4, 8");
  return bits;
}

int64_t ReadGroupSize(QuantizationFields& fields, int64_t fallback) {
  const int64_t group_size = fields.Int("group_size", fallback);
  if (group_size == -1) return 0;
  if (group_size < 1 || group_size > (1 << 24))
    fields.Fail("group_size", "must be -1 (a whole row) or above 0");
  return group_size;
}

// Reads the fields that a single module may set.
void ReadModuleFields(QuantizationFields& fields, WeightScheme& scheme) {
  if (fields.Find("bits") != nullptr) scheme.bits = static_cast<int>(ReadBits(fields));
  if (fields.Find("group_size") != nullptr) scheme.group_size = ReadGroupSize(fields, -1);
  scheme.symmetric = fields.Bool("sym", scheme.symmetric);
  scheme.ordered = fields.Bool("desc_act", scheme.ordered);
  scheme.scales = scheme.group_size == 0 ? ScaleKind::kRow : ScaleKind::kGroup;
  scheme.name = fmt::format("gptq {}-bit", scheme.bits);
}

// Reads GPTQModel's settings for single modules: "-:regex" leaves modules plain (not quantized);
// "+:regex" or "regex" changes their settings.
void ReadDynamic(QuantizationFields& fields, const WeightScheme& scheme,
                 QuantizationConfig& config) {
  const Json* dynamic = fields.Find("dynamic");
  if (dynamic == nullptr || *dynamic == false) return;
  if (!dynamic->is_object()) fields.Fail("dynamic", "must be an object");
  const std::string what = fields.what() + ".dynamic";
  for (const auto& [pattern, overrides] : dynamic->items()) {
    const std::string regex =
        pattern.starts_with("-:") || pattern.starts_with("+:") ? pattern.substr(2) : pattern;
    if (pattern.starts_with("-:")) {
      config.excluded().AddRegex(regex, 0, what);
      continue;
    }
    QuantizationFields own(overrides, fmt::format("{}[\"{}\"]", what, pattern));
    WeightScheme changed = scheme;
    ReadModuleFields(own, changed);
    own.Ignore({"damp_percent", "damp_auto_increment", "mse", "static_groups"});
    for (const std::string& key : own.Unread()) config.AddUnknownField("dynamic: " + key);
    config.targets().AddRegex(regex, config.AddScheme(changed), what);
  }
}

// Reads GPTQModel's version from meta.quantizer or meta.packer: "gptqmodel:7.0.0", or a list.
std::optional<std::string> ReadGptqModelVersion(QuantizationFields& fields) {
  constexpr std::string_view kName = "gptqmodel:";
  const Json* meta = fields.Find("meta");
  if (meta == nullptr || !meta->is_object()) return std::nullopt;
  for (const char* key : {"quantizer", "packer"}) {
    const auto tools = meta->find(key);
    if (tools == meta->end()) continue;
    for (const Json& tool : tools->is_array() ? *tools : Json::array({*tools})) {
      const std::string text = tool.is_string() ? tool.get<std::string>() : "";
      if (text.starts_with(kName)) return text.substr(kName.size());
    }
  }
  return std::nullopt;
}

// Reads how zero points are stored.
bool ReadPlusOne(QuantizationFields& fields) {
  const std::string other = fields.String("format", "gptq");
  const std::string format = fields.String("checkpoint_format", other);
  if (fields.Find("checkpoint_format") != nullptr && fields.Find("format") != nullptr &&
      format != other) {
    fields.Fail("format", "contradicts checkpoint_format");
  }
  if (format != "gptq" && format != "gptq_v2") {
    fields.Fail(fields.Find("checkpoint_format") != nullptr ? "checkpoint_format" : "format",
                "is not implemented. Supported: gptq, gptq_v2");
  }
  return format == "gptq";
}

}  // namespace

void ReadGptqConfig(QuantizationFields& fields, QuantizationConfig& config) {
  WeightScheme scheme{.format = WeightFormat::kGptq};
  scheme.bits = static_cast<int>(ReadBits(fields));
  scheme.group_size = ReadGroupSize(fields, 128);
  scheme.zero_plus_one = ReadPlusOne(fields);
  scheme.gptqmodel = ReadGptqModelVersion(fields);
  scheme.file_bits = scheme.bits;
  ReadModuleFields(fields, scheme);
  const std::string words = fields.String("pack_dtype", "int32");
  if (words != "int32" && words != "torch.int32")
    fields.Fail("pack_dtype", "is not implemented. Supported: int32");
  fields.Refuse("is_marlin_format", "codes in a kernel's own order");
  fields.Refuse("rotation", "rotated weights");
  fields.Refuse("adapter", "an additional low-rank weight");
  fields.Ignore({"damp_percent",
                 "enable_norm_bias_tuning",
                 "damp_auto_increment",
                 "static_groups",
                 "true_sequential",
                 "lm_head",
                 "model_name_or_path",
                 "model_file_base_name",
                 "modules_in_block_to_quantize",
                 "modules_to_not_convert",
                 "block_name_to_quantize",
                 "module_name_preceding_first_block",
                 "cache_block_outputs",
                 "batch_size",
                 "dataset",
                 "tokenizer",
                 "exllama_config",
                 "use_exllama",
                 "disable_exllama",
                 "max_input_length",
                 "use_cuda_fp16",
                 "model_seqlen",
                 "pad_token_id",
                 "backend",
                 "quantizer",
                 "mse",
                 "gptaq",
                 "v2",
                 "v2_alpha",
                 "hyb_act",
                 "act_group_aware",
                 "offload_to_disk",
                 "pack_impl",
                 "desc",
                 "iters",
                 "lr",
                 "minmax_lr",
                 "nsamples",
                 "seqlen",
                 "low_gpu_mem_usage",
                 "enable_minmax_tuning",
                 "enable_quanted_input",
                 "autoround_version",
                 "scale_dtype",
                 "data_type",
                 "dataset_name",
                 "method"});
  ReadDynamic(fields, scheme, config);
  config.targets().AddAll(config.AddScheme(scheme), fields.what());
}

std::string GptqCodes(const PartFinder& finder) { return finder.InModule("qweight"); }

void FindGptq(PartFinder& finder) {
  const WeightScheme& scheme = finder.scheme();
  WeightStorage& storage = finder.storage();
  const std::string codes = GptqCodes(finder), zeros = finder.InModule("qzeros"),
                    scales = finder.InModule("scales"), index = finder.InModule("g_idx");
  const TensorInfo& words = finder.Add(PartRole::kCodes, codes, {DType::kI32});
  finder.ExpectRank(codes, 2);
  const int64_t bits = scheme.bits, rows = words.shape[1];
  // Three words hold 32 3-bit codes, and every format requires K and N to be multiples of 32.
  const int64_t columns = words.shape[0] * 32 / bits;
  if (words.shape[0] * 32 % bits != 0 || (bits == 3 && columns % 32 != 0) ||
      rows * bits % 32 != 0) {
    finder.Fail(
        codes,
        fmt::format("has shape [{}, {}], which is not possible for {}-bit codes in 32-bit words",
                    words.shape[0], words.shape[1], bits));
  }
  storage.shape = {rows, columns};
  storage.scale_rows = 1;
  storage.scale_columns = scheme.group_size == 0 ? columns : scheme.group_size;
  const int64_t groups = CeilDivide(columns, storage.scale_columns);
  finder.Add(PartRole::kScales, scales, {DType::kF16, DType::kBF16, DType::kF32});
  finder.Expect(scales, {groups, rows});
  finder.Add(PartRole::kZeros, zeros, {DType::kI32});
  finder.Expect(zeros, {groups, rows * bits / 32});
  if (scheme.ordered || finder.Has(index)) {
    finder.Add(PartRole::kGroupIndex, index, {DType::kI32});
    finder.Expect(index, {columns});
  }
  FindGptqZeros(finder, zeros);
}

}  // namespace oscar
