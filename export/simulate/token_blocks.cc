// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/token_blocks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/base/check.h"
#include "linalg/hadamard.h"

namespace oscar {
namespace {

constexpr int64_t kBlocksAtOnce = 64;  // limits the memory of intermediate tensors

}  // namespace

at::Tensor ComputeRows(const at::Tensor& rows) { return rows.to(ResultType(rows)).contiguous(); }

at::Tensor ThroughTokenBlocks(const at::Tensor& rows, int64_t sink, int64_t block,
                              const std::function<at::Tensor(const at::Tensor&)>& round_trip) {
  at::Tensor stored = ComputeRows(rows).clone();
  const int64_t num_blocks = std::max<int64_t>(0, rows.size(0) - sink) / block;
  for (int64_t begin = 0; begin < num_blocks; begin += kBlocksAtOnce) {
    const int64_t count = std::min(kBlocksAtOnce, num_blocks - begin);
    const at::Tensor tokens = stored.narrow(0, sink + begin * block, count * block);
    tokens.copy_(round_trip(tokens.unflatten(0, {count, block})).flatten(0, 1));
  }
  return stored;
}

at::Tensor HadamardRows(const at::Tensor& x) {
  const at::Tensor h = RotationTensor({BlockHadamard(x.size(-1))})[0];
  return at::matmul(x, h.to(x.device(), x.scalar_type()));
}

int64_t GroupWithin(int64_t dim, int64_t size) {
  OSCAR_CHECK(dim > 0 && size > 0);
  int64_t group = std::min(dim, size);
  while (dim % group != 0) --group;
  return group;
}

CacheMethod BlockMethod(
    std::string_view name, std::string_view description,
    std::function<LayerCache(const MethodContext&)> make,
    std::function<CacheCost(const std::vector<LayerSpec>&, int64_t tokens)> cost) {
  return {
      .name = name,
      .description = description,
      .takes_clip = false,
      .takes_windows = false,
      .make = [make = std::move(make)](const MethodContext& context, size_t,
                                       const ArmOptions&) { return make(context); },
      .cost = [cost = std::move(cost)](const MethodContext& context, const ArmOptions&,
                                       int64_t tokens) { return cost(context.layers(), tokens); }};
}

CacheCost MeanCost(const std::vector<LayerSpec>& layers, int64_t tokens, const RowBitsOf& k,
                   const RowBitsOf& v) {
  OSCAR_CHECK_LE(1, tokens);
  return MeanOverCache(layers, tokens, [&](size_t layer_index, bool keys) {
    const AttentionSpec& spec = layers[layer_index].attention;
    const auto heads = static_cast<double>(spec.num_kv_heads);
    const RowBits bits =
        keys ? k(spec.head_dim, spec.num_kv_heads) : v(spec.v_head_dim, spec.num_kv_heads);
    return CacheCost{heads * bits.paper, heads * bits.actual};
  });
}

double PaperRowBits(int64_t tokens, int64_t sink, int64_t dim, double bits_per_element) {
  const auto kept = static_cast<double>(std::min(tokens, sink));
  return static_cast<double>(dim) *
         ((static_cast<double>(tokens) - kept) * bits_per_element + kept * kKeptBits);
}

}  // namespace oscar
