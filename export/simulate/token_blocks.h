// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by the methods that quantize whole blocks of tokens (KIVI, Kitty, KVarN, OScaR).
// They cut a sequence into blocks and count the cost of such a cache. Blocks are counted from the
// end of the sinks, so later tokens do not change the codes of complete blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

// Returns a copy of `rows` [tokens, num_kv_heads, dim] in float64 if they are float64, else
// float32. Complete blocks after the sinks are replaced by what `round_trip` returns for them. It
// gets several at a time: [blocks, block, num_kv_heads, dim]. Sinks and the unfinished block are
// unchanged.
at::Tensor ThroughTokenBlocks(const at::Tensor& rows, int64_t sink, int64_t block,
                              const std::function<at::Tensor(const at::Tensor&)>& round_trip);

// Converts rows to the form in which caches compute: contiguous, float64 or float32.
at::Tensor ComputeRows(const at::Tensor& rows);

// Multiplies `x` [..., dim] by the Hadamard matrix of its last dim (linalg/hadamard.h), which is
// its own inverse.
at::Tensor HadamardRows(const at::Tensor& x);

// Returns the largest divisor of `dim` up to `size`, so that a shorter head is one group.
int64_t GroupWithin(int64_t dim, int64_t size);

// Makes a method whose cache and costs depend only on its own options. Arms cannot add modifiers.
CacheMethod BlockMethod(
    std::string_view name, std::string_view description,
    std::function<LayerCache(const MethodContext&)> make,
    std::function<CacheCost(const std::vector<LayerSpec>&, int64_t tokens)> cost);

inline constexpr double kMetadataBits = 32;  // float16 scale and minimum of a quantization group

// Bits of the keys or values of one KV head, for a sequence of some length.
struct RowBits {
  double paper = 0, actual = 0;
};
using RowBitsOf = std::function<RowBits(int64_t dim, int64_t num_kv_heads)>;

// Returns the mean bits per element over the keys and values of all layers.
CacheCost MeanCost(const std::vector<LayerSpec>& layers, int64_t tokens, const RowBitsOf& k,
                   const RowBitsOf& v);

// Returns a head's bits as papers count them: `sink` tokens in 16 bits and all others quantized, as
// if there were no residual of exact recent tokens.
double PaperRowBits(int64_t tokens, int64_t sink, int64_t dim, double bits_per_element);

}  // namespace oscar
