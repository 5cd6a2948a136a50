// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// E2M1 codes, two per byte, the low nibble first. MXFP4 has one E8M0 scale per 32 values; it is
// used for gpt-oss's stacked experts and for compressed-tensors' matrices. NVFP4 has one float8
// scale per 16 values and one scale per tensor. The tensor's scale divides in compressed-tensors
// (weight_global_scale) and multiplies in ModelOpt (weight_scale_2).
#include <fmt/format.h>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {
namespace {

constexpr int64_t kMxfp4Group = 32;

// Finds codes [N, K / 2] and scales [N, K / group_size].
void FindMatrix(PartFinder& finder, const std::string& codes, const std::string& scales,
                DType scale_type, int64_t group_size) {
  WeightStorage& storage = finder.storage();
  const TensorInfo& bytes = finder.Add(PartRole::kCodes, codes, {DType::kU8});
  finder.ExpectRank(codes, 2);
  storage.shape = {bytes.shape[0], 2 * bytes.shape[1]};
  storage.scale_rows = 1;
  storage.scale_columns = group_size;
  if (storage.shape[1] % group_size != 0) {
    finder.Fail(codes,
                fmt::format("has {} codes in a row, expected a multiple of the group size {}",
                            storage.shape[1], group_size));
  }
  finder.Add(PartRole::kScales, scales, {scale_type});
  finder.Expect(scales, {storage.shape[0], storage.shape[1] / group_size});
}

// Finds blocks [E, N, K / 32, 16] and scales [E, N, K / 32]; the dense tensor is [E, K, N].
void FindStacked(PartFinder& finder, const std::string& blocks, const std::string& scales) {
  WeightStorage& storage = finder.storage();
  const TensorInfo& bytes = finder.Add(PartRole::kCodes, blocks, {DType::kU8});
  finder.ExpectRank(blocks, 4);
  const std::vector<int64_t>& shape = bytes.shape;
  finder.Expect(blocks, {shape[0], shape[1], shape[2], kMxfp4Group / 2});
  storage.shape = {shape[0], shape[2] * kMxfp4Group, shape[1]};
  storage.transposed = true;
  storage.scale_rows = 1;
  storage.scale_columns = kMxfp4Group;
  finder.Add(PartRole::kScales, scales, {DType::kU8});
  finder.Expect(scales, {shape[0], shape[1], shape[2]});
}

bool IsStacked(const PartFinder& finder) { return !finder.weight().ends_with(".weight"); }

}  // namespace

void ReadMxfp4Config(QuantizationFields& fields, QuantizationConfig& config) {
  fields.Ignore({"modules_to_not_convert", "dequantize"});
  config.targets().AddAll(config.AddScheme({.format = WeightFormat::kMxfp4,
                                            .name = "mxfp4",
                                            .bits = 4,
                                            .scales = ScaleKind::kGroup,
                                            .group_size = kMxfp4Group}),
                          fields.what());
}

std::string Mxfp4Codes(const PartFinder& finder) {
  return finder.weight() + (IsStacked(finder) ? "_blocks" : "_packed");
}

void FindMxfp4(PartFinder& finder) {
  if (IsStacked(finder)) {
    FindStacked(finder, Mxfp4Codes(finder), finder.weight() + "_scales");
  } else {
    FindMatrix(finder, Mxfp4Codes(finder), finder.weight() + "_scale", DType::kU8, kMxfp4Group);
  }
}

std::string Nvfp4Codes(const PartFinder& finder) {
  return finder.weight() + (finder.scheme().global_scale_divides ? "_packed" : "");
}

void FindNvfp4(PartFinder& finder) {
  FindMatrix(finder, Nvfp4Codes(finder), finder.weight() + "_scale", DType::kF8E4M3, kNvfp4Group);
  const std::string global =
      finder.weight() + (finder.scheme().global_scale_divides ? "_global_scale" : "_scale_2");
  finder.Add(PartRole::kGlobalScale, global, {DType::kF32});
  finder.Expect(global, {1}, /*squeezed=*/true);
  finder.storage().parts.back().shape = {};
}

}  // namespace oscar
