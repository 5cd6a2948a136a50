// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of a cache whose rows have a scale and a zero per quantization group, windows included:
// a mean over the K and V elements of all layers. Runtimes allocate more metadata than the paper
// counts, so both costs are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

// Returns the bits per element that all caches hold for `tokens` tokens. `bits(layer_index, keys)`
// gives the bits of all rows of one side of a layer. Latent attention stores one row, as keys, and
// separately its positional part in 16 bits, as upstream's server does.
CacheCost MeanOverCache(const std::vector<LayerSpec>& layers, int64_t tokens,
                        const std::function<CacheCost(size_t layer_index, bool keys)>& bits);

inline constexpr int64_t kWholeHead = -1;

// The storage of rows on one side. A row is a token of a KV head.
struct AffineSide {
  double bits = 2;                   // per value; 0 and 16: not quantized
  double metadata_bits = 32;         // per quantization group, as papers count: 16-bit numbers
  double actual_metadata_bits = 64;  // as the implementation stores it: float32
  // Values per group. 0: as in the options (0: the whole head); kWholeHead: always the whole head.
  int64_t quant_group_size = 0;
};

// Returns CacheMethod::cost for a method with the arm's windows.
std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> AffineCost(
    const AffineSide& k, const AffineSide& v);
inline auto AffineCost(const AffineSide& both) { return AffineCost(both, both); }
// The same for storage that depends on the layer's heads.
std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> CostByLayer(
    std::function<AffineSide(const AttentionSpec& spec, bool keys)> side);

// Implements CacheMethod::cost for a cache that is not quantized.
CacheCost UnquantizedCost(const MethodContext&, const ArmOptions&, int64_t tokens);

}  // namespace oscar
