// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kvarn.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/codecs/variance_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/token_blocks.h"
#include "linalg/variance_normalization.h"

namespace oscar {
namespace {

// `to_tiles` converts [blocks, tile, num_kv_heads, dim] to [blocks, num_kv_heads, rows, columns],
// and `from_tiles` converts back.
at::Tensor Side(const at::Tensor& rows, int bits, const KvarnOptions& options,
                at::IntArrayRef to_tiles, at::IntArrayRef from_tiles) {
  const at::Tensor x = ComputeRows(rows);
  if (bits == 0) return x;
  const auto tiles = [&](const at::Tensor& blocks) {
    const at::Tensor rotated = HadamardRows(blocks).permute(to_tiles).contiguous();
    return HadamardRows(
        DecodeKvarnTiles(EncodeKvarnTiles(rotated, bits, options.iterations)).permute(from_tiles));
  };
  return ThroughTokenBlocks(x, kKvarnSink, options.tile, tiles);
}

CachedRows Store(const CacheSides& rows, const KvarnOptions& options) {
  return {{Side(rows.k, options.k_bits, options, {0, 2, 3, 1}, {0, 3, 1, 2}),
           Side(rows.v, options.v_bits, options, {0, 2, 1, 3}, {0, 2, 1, 3})},
          {}};
}

CacheMethod Kvarn(std::string_view name, std::string_view description,
                  const KvarnOptions& options) {
  return BlockMethod(
      name, description, [options](const MethodContext&) { return KvarnCache(options); },
      [options](const std::vector<LayerSpec>& layers, int64_t tokens) {
        return KvarnCost(options, layers, tokens);
      });
}

}  // namespace

LayerCache KvarnCache(const KvarnOptions& options) {
  const ExactTokens exact = ExactUntilBlocksFill(kKvarnSink, options.tile, 0);
  return {.store = [options](const CacheSides& rows) { return Store(rows, options); },
          .k_exact = exact,
          .v_exact = exact};
}

CacheCost KvarnCost(const KvarnOptions& options, const std::vector<LayerSpec>& layers,
                    int64_t tokens) {
  const int64_t tiles = std::max<int64_t>(0, tokens - kKvarnSink) / options.tile;
  // The sink block and one unfinished tile are always fully allocated.
  const auto kept = static_cast<double>(kKvarnSink + options.tile);
  const auto side = [&](const TileShape& shape, int bits, int64_t dim) {
    const auto tile_bits = static_cast<double>(8 * KvarnTileBytes(shape, bits));
    return RowBits{
        PaperRowBits(tokens, kKvarnSink, dim, tile_bits / static_cast<double>(dim * options.tile)),
        static_cast<double>(tiles) * tile_bits + kKeptBits * kept * static_cast<double>(dim)};
  };
  return MeanCost(
      layers, tokens,
      [&](int64_t dim, int64_t) {
        return side({dim, options.tile}, options.k_bits, dim);
      },
      [&](int64_t dim, int64_t) {
        return side({options.tile, dim}, options.v_bits, dim);
      });
}

std::vector<CacheMethod> KvarnMethods() {
  return {Kvarn("kvarn_k4v2", "KVarN, keys 4 bits, values 2, tiles of 128", {}),
          Kvarn("kvarn_k4v4", "KVarN, 4 bits, tiles of 128", {.v_bits = 4}),
          Kvarn("kvarn_k2v2", "KVarN, 2 bits, tiles of 128", {.k_bits = 2}),
          Kvarn("kvarn_k4v2_g64", "KVarN, keys 4 bits, values 2, tiles of 64", {.tile = 64}),
          Kvarn("kvarn_k4v2_i8", "KVarN, keys 4 bits, values 2, 8 iterations (newer releases)",
                {.iterations = 8})};
}

}  // namespace oscar
