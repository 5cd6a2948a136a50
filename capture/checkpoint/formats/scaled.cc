// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights stored as float8 or int8 codes in the dense shape, with scales. Also reads the configs of
// the quant_methods fp8 (DeepSeek and later) and fbgemm_fp8. Despite its name, weight_scale_inv
// multiplies. The blocks at the edges of a matrix may be partly empty.
#include <fmt/format.h>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {
namespace {

// Ignores fields that concern activations, and lists of plain modules, which the stored types show.
void IgnoreActivations(QuantizationFields& fields) {
  fields.Ignore({"activation_scheme", "activation_scale_ub", "modules_to_not_convert",
                 "ignored_layers", "ignored_modules", "dequantize", "kv_cache_scheme",
                 "kv_cache_quant_method", "kv_cache_quant_targets", "scale_fmt",
                 "is_checkpoint_fp8_serialized"});
}

void RequireE4m3(QuantizationFields& fields) {
  for (const char* key : {"fmt", "weight_format"}) {
    const std::string fmt = fields.String(key, "e4m3");
    if (fmt != "e4m3" && fmt != "float8_e4m3fn")
      fields.Fail(key, "is not implemented. Supported: e4m3");
  }
}

}  // namespace

void ReadFp8Config(QuantizationFields& fields, QuantizationConfig& config) {
  RequireE4m3(fields);
  IgnoreActivations(fields);
  WeightScheme scheme{.format = WeightFormat::kScaled, .name = "fp8", .bits = 8};
  scheme.scales = ScaleKind::kTensorOrRow;
  if (const Json* block = fields.Find("weight_block_size")) {
    const bool fits = block->is_array() && block->size() == 2 && (*block)[0].is_number_unsigned() &&
                      (*block)[1].is_number_unsigned();
    const int64_t largest = int64_t{1} << 24;
    if (!fits || (*block)[0] < 1 || (*block)[1] < 1 || (*block)[0] > largest ||
        (*block)[1] > largest) {
      fields.Fail("weight_block_size", "must be two numbers above 0: rows and columns of a block");
    }
    scheme.scales = ScaleKind::kBlock;
    scheme.block_rows = (*block)[0].get<int64_t>();
    scheme.group_size = (*block)[1].get<int64_t>();
    scheme.name = fmt::format("fp8, blocks of {} x {}", scheme.block_rows, scheme.group_size);
  }
  config.targets().AddAll(config.AddScheme(scheme), fields.what());
}

void ReadFbgemmConfig(QuantizationFields& fields, QuantizationConfig& config) {
  IgnoreActivations(fields);
  config.targets().AddAll(config.AddScheme({.format = WeightFormat::kScaled,
                                            .name = "fbgemm_fp8",
                                            .bits = 8,
                                            .scales = ScaleKind::kRow}),
                          fields.what());
}

std::string ScaledCodes(const PartFinder& finder) { return finder.weight(); }

void FindScaled(PartFinder& finder) {
  const WeightScheme& scheme = finder.scheme();
  WeightStorage& storage = finder.storage();
  const std::string& codes = finder.weight();
  storage.shape = finder.Add(PartRole::kCodes, codes, {scheme.code}).shape;
  finder.ExpectRank(codes, storage.shape.size() == 3 ? 3 : 2);
  const int64_t rows = storage.shape[storage.shape.size() - 2], columns = storage.shape.back();

  const std::string inverse = codes + "_scale_inv", plain = codes + "_scale";
  if (finder.Has(inverse) && finder.Has(plain))
    finder.Fail(inverse, fmt::format("exists in addition to {}", plain));
  const std::string scales = finder.Has(inverse) ? inverse : plain;
  const TensorInfo& info = finder.Add(PartRole::kScales, scales,
                                      {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E8M0});
  ScaleKind kind = scheme.scales;
  const int64_t experts = storage.shape.size() == 3 ? storage.shape[0] : 1;
  if (kind == ScaleKind::kTensorOrRow) {
    const uint64_t count = info.size / static_cast<uint64_t>(DTypeBytes(info.dtype));
    kind = count == static_cast<uint64_t>(experts) ? ScaleKind::kTensor : ScaleKind::kRow;
  }
  storage.scale_rows = kind == ScaleKind::kTensor  ? rows
                       : kind == ScaleKind::kBlock ? scheme.block_rows
                                                   : 1;
  storage.scale_columns =
      kind == ScaleKind::kBlock || kind == ScaleKind::kGroup ? scheme.group_size : columns;
  if (kind == ScaleKind::kGroup && columns % scheme.group_size != 0) {
    finder.Fail(codes, fmt::format("has {} columns, expected a multiple of the group size {}",
                                   columns, scheme.group_size));
  }
  const std::vector<int64_t> grid = {experts, CeilDivide(rows, storage.scale_rows),
                                     CeilDivide(columns, storage.scale_columns)};
  finder.Expect(scales, grid, /*squeezed=*/true);
  const std::string zeros = codes + "_zero_point";
  if (!scheme.symmetric || finder.Has(zeros)) {
    finder.Add(PartRole::kZeros, zeros, {scheme.code});
    finder.Expect(zeros, grid, /*squeezed=*/true);
  }
  // Removes dimensions of 1, because some releases store them and others do not.
  for (WeightPart& part : storage.parts) {
    if (part.role != PartRole::kCodes)
      part.shape = experts > 1 || storage.shape.size() == 3
                       ? grid
                       : std::vector<int64_t>(grid.begin() + 1, grid.end());
  }
}

}  // namespace oscar
