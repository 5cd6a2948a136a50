// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// AWQ's GEMM layout: codes [K, N] and zero points [groups along K, N], eight per int32 word along N
// in the column order 0 2 4 6 1 3 5 7. The GEMV layouts and those of other kernels have other
// shapes, which can look valid too. So only `version` can tell the layout.
#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {

void ReadAwqConfig(QuantizationFields& fields, QuantizationConfig& config) {
  if (fields.Int("bits", fields.Int("w_bit", 4)) != 4)
    fields.Fail("bits", "is not implemented. Supported: 4");
  std::string version = fields.String("version", fields.String("format", "gemm"));
  std::ranges::transform(version, version.begin(), [](unsigned char c) { return std::tolower(c); });
  if (version != "gemm") fields.Fail("version", "is not implemented. Supported: gemm");
  if (!fields.Bool("zero_point", true))
    fields.Fail("zero_point", "is not implemented: the gemm layout has zero points");
  const int64_t group_size = fields.Int("group_size", fields.Int("q_group_size", 128));
  if (group_size != -1 && (group_size < 1 || group_size > (1 << 24)))
    fields.Fail("group_size", "must be -1 (a whole row) or above 0");
  fields.Ignore({"modules_to_not_convert", "ignore", "backend", "do_fuse", "fuse_max_seq_len",
                 "modules_to_fuse", "exllama_config", "lm_head", "desc_act", "sym", "meta",
                 "pack_dtype", "checkpoint_format", "damp_percent", "true_sequential",
                 "static_groups", "method"});
  config.targets().AddAll(config.AddScheme({.format = WeightFormat::kAwq,
                                            .name = "awq 4-bit",
                                            .bits = 4,
                                            .scales = ScaleKind::kGroup,
                                            .group_size = group_size == -1 ? 0 : group_size,
                                            .symmetric = false}),
                          fields.what());
}

void FindAwq(PartFinder& finder) {
  constexpr int64_t kCodesPerWord = 8;
  WeightStorage& storage = finder.storage();
  const std::string codes = GptqCodes(finder), zeros = finder.InModule("qzeros"),
                    scales = finder.InModule("scales");
  const TensorInfo& words = finder.Add(PartRole::kCodes, codes, {DType::kI32});
  finder.ExpectRank(codes, 2);
  const int64_t columns = words.shape[0], rows = words.shape[1] * kCodesPerWord;
  storage.shape = {rows, columns};
  storage.scale_rows = 1;
  storage.scale_columns = finder.scheme().group_size == 0 ? columns : finder.scheme().group_size;
  if (columns % storage.scale_columns != 0) {
    finder.Fail(codes, fmt::format("has {} rows, expected a multiple of the group size {}", columns,
                                   storage.scale_columns));
  }
  const int64_t groups = columns / storage.scale_columns;
  finder.Add(PartRole::kScales, scales, {DType::kF16, DType::kBF16, DType::kF32});
  finder.Expect(scales, {groups, rows});
  finder.Add(PartRole::kZeros, zeros, {DType::kI32});
  finder.Expect(zeros, {groups, rows / kCodesPerWord});
}

}  // namespace oscar
