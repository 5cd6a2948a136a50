// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/cache/cache_view.h"

#include <fmt/format.h>

#include "linalg/base/error.h"

namespace oscar {
namespace {

void CheckSide(const PagedSide& side, const char* name) {
  if (IsValid(side)) return;
  throw UsageError(
      fmt::format("the cache of {} has head dim {}, {} bits and quantization groups of {}; "
                  "supported: multiples of 32 from {} to {}, 2 to 4 bits, groups of the whole "
                  "head, 64 or 32 that divide it, or a quarter of heads of 64, 128, 256 or 512",
                  name, side.dim, side.bits, side.quant_group_size, kMinCacheDim, kMaxCacheDim));
}

}  // namespace

void CheckCacheView(const CacheView& view) {
  CheckSide(view.format.k, "keys");
  CheckSide(view.format.v, "values");
  if (!IsValid(view.format))
    throw UsageError(fmt::format("a cache page has {} tokens; supported: 16, 64 and 128",
                                 view.format.page_tokens));
  if (view.num_kv_heads < 1 || view.num_requests < 1)
    throw UsageError(
        fmt::format("the cache has {} KV heads and {} requests; both numbers must be positive",
                    view.num_kv_heads, view.num_requests));
  if (view.sink_tokens < 0 || view.sink_tokens % kTileTokens != 0 || view.recent_slots < 0 ||
      view.recent_slots % kTileTokens != 0)
    throw UsageError(
        fmt::format("the cache windows have {} sink tokens and {} recent slots; both numbers must "
                    "be multiples of {}",
                    view.sink_tokens, view.recent_slots, kTileTokens));
}

}  // namespace oscar
