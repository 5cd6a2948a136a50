// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How the weights of one kind of module are stored according to quantization_config. It is known
// before any tensor is read; weight_storage.h finds the tensors. group_size counts values of one
// output row; 0 means the whole row (-1 in files).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/checkpoint/dtype.h"

namespace oscar {

// The dense W is [N = out_features, K = in_features]. ScaleKind says which values share a scale.
enum class WeightFormat {
  kPlain,   // BF16, F16 or F32 values
  kScaled,  // (code - zero) * scale: float8 or int8 codes, one scale per tensor, row, group or
            // block
  kPacked,  // (code - zero) * scale: signed codes in int32 words along K (compressed-tensors)
  kGptq,    // scale * (code - zero): codes in int32 words along K, stored [K, N]
  kAwq,     // (code - zero) * scale: 4-bit codes in int32 words along N, stored [K, N]
  kMxfp4,   // E2M1 * 2^(s - 127), 32 values per scale (OCP microscaling)
  kNvfp4,   // E2M1 * scale of 16 values, then * or / the tensor's scale
  kGguf,    // see gguf/gguf_weight.h
};

// The values that share one scale.
enum class ScaleKind { kTensor, kRow, kTensorOrRow, kGroup, kBlock };

struct WeightScheme {
  WeightFormat format = WeightFormat::kPlain;
  std::string name = {};  // for messages: "gptq 4-bit"
  int bits = 16;
  DType code = DType::kF8E4M3;  // for kScaled
  ScaleKind scales = ScaleKind::kTensor;
  int64_t group_size = 0;      // kGroup: values per scale; kBlock: columns of a block
  int64_t block_rows = 0;      // for kBlock
  bool symmetric = true;       // zero points follow from the bits (though GPTQ stores them)
  bool ordered = false;        // requires a g_idx
  bool zero_plus_one = false;  // GPTQ v1: zero points are stored less 1
  int file_bits = 16;          // GPTQ: bits of the whole file, which a module can override
  std::optional<std::string> gptqmodel = {};  // GPTQ: version of the GPTQModel that wrote it
  bool global_scale_divides = false;          // for kNvfp4
};

}  // namespace oscar
