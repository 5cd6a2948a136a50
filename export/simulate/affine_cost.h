// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits per element of a cache that stores a scale and a zero per quantization group: the mean over
// the K and V elements of all layers, including windows. Runtimes allocate more metadata than the
// paper counts, so both numbers are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

// Returns the mean bits per element over the keys and values of all layers. `bits(layer_index,
// keys)` returns the bits of all keys (true) or values of a layer for `tokens` tokens. Latent
// attention stores one row per token, which counts as keys, and the rotary part of its key in 16
// bits, as upstream's server does.
CacheCost MeanOverCache(const std::vector<LayerSpec>& layers, int64_t tokens,
                        const std::function<CacheCost(size_t layer_index, bool keys)>& bits);

inline constexpr int64_t kWholeHead = -1;

// The storage format of the keys or the values. A row is one token of one KV head.
struct AffineSide {
  double bits = 2;                   // per value; 0 and 16: not quantized
  double metadata_bits = 32;         // per quantization group, as papers count: 16-bit numbers
  double actual_metadata_bits = 64;  // as the implementation stores it: float32
  // Values per group. 0: MethodContext's quant_group_size (0: whole head); kWholeHead: whole head.
  int64_t quant_group_size = 0;
};

// Returns a CacheMethod::cost that includes the arm's windows.
std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> AffineCost(
    const AffineSide& k, const AffineSide& v);
inline auto AffineCost(const AffineSide& both) { return AffineCost(both, both); }
// Does the same for storage that depends on a layer's heads.
std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> CostByLayer(
    std::function<AffineSide(const AttentionSpec& spec, bool keys)> side);

// Implements CacheMethod::cost for a cache that is not quantized.
CacheCost UnquantizedCost(const MethodContext&, const ArmOptions&, int64_t tokens);

}  // namespace oscar
