// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantizers of KVLinC (arXiv 2510.05373, section 3): KIVI's format, with values rotated by a
// Hadamard matrix and keys unchanged. KVLinC's linear correction is left out. It adds a recurrent
// state of trained feature maps to the sums of attention, but a simulated cache only returns keys
// and values.
#include <utility>

#include "export/simulate/methods/kivi.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/token_blocks.h"

namespace oscar {
namespace {

constexpr KiviOptions kKvLincFormat = {.bits = 2, .quant_group_size = 128, .residual = 128};

LayerCache KvLincCache() {
  LayerCache cache = KiviCache(kKvLincFormat);
  cache.store = [store = std::move(cache.store)](const CacheSides& rows) {
    CachedRows stored = store({rows.k, HadamardRows(ComputeRows(rows.v))});
    stored.quantized.v = HadamardRows(stored.quantized.v);
    return stored;
  };
  return cache;
}

}  // namespace

std::vector<CacheMethod> KvLincMethods() {
  return {BlockMethod(
      "kvlinc2_uncorrected",
      "KVLinC's quantizers without its trained correction: keys per channel, values rotated, 2 "
      "bits",
      [](const MethodContext&) { return KvLincCache(); },
      [](const std::vector<LayerSpec>& layers, int64_t tokens) {
        return KiviCost(kKvLincFormat, layers, tokens);
      })};
}

}  // namespace oscar
