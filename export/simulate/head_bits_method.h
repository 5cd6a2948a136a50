// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits for each KV head and side of a layer by marginal KL (calib/choose/bit_allocation.h), as a
// method to be measured. No runtime stores heads of one layer in different bits, so this is what
// such a format would gain over bits per layer, and no choice that an artifact can hold.
#pragma once

#include <functional>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

struct HeadBits {
  std::vector<int> k, v;  // [num_kv_heads]
};

// Shares `mean_bits` per element of a layer's codes out to its heads, 2 to 4 bits each, by the
// errors that uniform caches make on calibration rows: `make(bits)` is the layer's cache with that
// many on both sides. Rows in the second half of a few texts; those in the windows of the context
// alone say nothing, so without any beyond them everything counts as quantized.
HeadBits ChooseHeadBits(const MethodContext& context, size_t layer_index, double mean_bits,
                        const std::function<LayerCache(int bits)>& make);

}  // namespace oscar
