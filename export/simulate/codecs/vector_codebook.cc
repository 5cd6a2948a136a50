// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/vector_codebook.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

constexpr int64_t kPointsAtOnce = 1 << 16;  // limits the memory of products with all entries

at::Tensor NearestIndices(const at::Tensor& points, const at::Tensor& codebook) {  // [count]
  const at::Tensor half = codebook.square().sum(1).mul_(0.5);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : points.split(kPointsAtOnce))
    parts.push_back(at::matmul(part, codebook.t()).sub_(half).argmax(1));
  return at::cat(parts);
}

at::Tensor Start(const at::Tensor& points, const CodebookOptions& options) {
  const at::Tensor different = std::get<0>(at::unique_dim(points, 0));
  std::vector<int64_t> order(static_cast<size_t>(different.size(0)));
  std::iota(order.begin(), order.end(), int64_t{0});
  SplitMix64(options.seed).Shuffle(order);
  order.resize(static_cast<size_t>(options.entries), order.back());
  return different.index_select(0, at::tensor(order, at::kLong));
}

at::Tensor Normalized(const at::Tensor& x) { return x.div(x.norm(2, {1}, true).clamp_min(1e-12)); }

}  // namespace

at::Tensor VectorCodebook(const at::Tensor& points, const CodebookOptions& options) {
  at::Tensor x = points.to(at::kCPU, at::kDouble);
  if (options.spherical) x = Normalized(x);
  at::Tensor codebook = Start(x, options);
  const at::Tensor narrow =
      x.to(at::kFloat);  // halves the time, most of which is the search for nearest entries
  for (int i = 0; i < options.iterations; ++i) {
    const at::Tensor nearest = NearestIndices(narrow, codebook.to(at::kFloat));
    const at::Tensor count =
        at::bincount(nearest, {}, options.entries).to(at::kDouble).unsqueeze(1);
    const at::Tensor mean =
        at::zeros_like(codebook).index_add_(0, nearest, x).div_(count.clamp_min(1));
    codebook = at::where(count.gt(0), options.spherical ? Normalized(mean) : mean, codebook);
  }
  return codebook;
}

at::Tensor NearestEntries(const at::Tensor& points, const at::Tensor& codebook) {
  const at::Tensor entries = codebook.to(points.options());
  const at::Tensor flat = points.reshape({-1, points.size(-1)});
  return entries.index_select(0, NearestIndices(flat, entries)).view(points.sizes());
}

}  // namespace oscar
