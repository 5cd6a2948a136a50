// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by the methods that quantize whole blocks of tokens (KIVI, Kitty, KVarN, OScaR):
// they cut a sequence into blocks and count the cost of such a cache. Blocks start after the sinks,
// so the same prefix gives the same codes only in complete blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

// Returns a copy of `rows` [tokens, num_kv_heads, dim], float64 for float64 rows, else float32.
// Every complete block after the sinks goes through `round_trip`, which gets several at a time:
// [blocks, block, num_kv_heads, dim]. Sinks and the unfinished block are unchanged.
at::Tensor ThroughTokenBlocks(const at::Tensor& rows, int64_t sink, int64_t block,
                              const std::function<at::Tensor(const at::Tensor&)>& round_trip);

// Converts rows to the form in which caches compute: contiguous, float64 or float32.
at::Tensor ComputeRows(const at::Tensor& rows);

// Multiplies `x` [..., dim] by the Hadamard matrix of its last dim (linalg/hadamard.h), which is
// its own inverse.
at::Tensor HadamardRows(const at::Tensor& x);

// Returns the largest divisor of `dim` up to `size`, so that a shorter head is one group.
int64_t GroupWithin(int64_t dim, int64_t size);

// Makes a method whose cache and costs depend only on its own options. Arms add nothing to it.
CacheMethod BlockMethod(
    std::string_view name, std::string_view description,
    std::function<LayerCache(const MethodContext&)> make,
    std::function<CacheCost(const std::vector<LayerSpec>&, int64_t tokens)> cost);

inline constexpr double kMetadataBits = 32;  // float16 scale and minimum of a quantization group

// Bits of the rows of one KV head on one side, for a sequence of some length.
struct RowBits {
  double paper = 0, actual = 0;
};
using RowBitsOf = std::function<RowBits(int64_t dim, int64_t num_kv_heads)>;

// Returns bits per element over all layers and both sides.
CacheCost MeanCost(const std::vector<LayerSpec>& layers, int64_t tokens, const RowBitsOf& k,
                   const RowBitsOf& v);

// Returns bits as papers count: `sink` tokens in 16 bits, all others quantized, without a residual.
double PaperRowBits(int64_t tokens, int64_t sink, int64_t dim, double bits_per_element);

}  // namespace oscar
