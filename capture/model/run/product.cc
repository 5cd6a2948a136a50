// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <vector>

#include "capture/model/run/tensor_pieces.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Rows and columns per tile of a product. Large tiles make packing cheap; smaller ones are used if
// there would be too few tiles for all threads.
struct TileSize {
  int64_t rows = 256, columns = 512;
};
constexpr TileSize kSmallestTile = {64, 128};
constexpr int64_t kEnoughTiles = 8;

bool IsTiled(const at::Tensor& a, const at::Tensor& b) {
  return a.is_cpu() && (a.scalar_type() == at::kFloat || a.scalar_type() == at::kDouble) &&
         b.scalar_type() == a.scalar_type() && !a.requires_grad() && !b.requires_grad();
}

int64_t NumTiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

TileSize TilesOf(const at::Tensor& product) {
  TileSize tile;
  const auto enough = [&] {
    return product.size(0) * NumTiles(product.size(1), tile.rows) *
               NumTiles(product.size(2), tile.columns) >=
           kEnoughTiles;
  };
  while (!enough() && (tile.rows > kSmallestTile.rows || tile.columns > kSmallestTile.columns)) {
    const bool wide = tile.columns > 2 * tile.rows || tile.rows == kSmallestTile.rows;
    (wide ? tile.columns : tile.rows) /= 2;
  }
  return tile;
}

void Tiled(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, bool add) {
  const TileSize tile_size = TilesOf(sum);
  const int64_t rows = NumTiles(sum.size(1), tile_size.rows),
                columns = NumTiles(sum.size(2), tile_size.columns);
  ForEachTensorPiece(sum.size(0) * rows * columns, [&](int64_t i) {
    const int64_t batch = i / (rows * columns), row = i / columns % rows * tile_size.rows,
                  column = i % columns * tile_size.columns;
    const int64_t height = std::min(tile_size.rows, sum.size(1) - row),
                  width = std::min(tile_size.columns, sum.size(2) - column);
    at::Tensor tile = sum[batch].narrow(0, row, height).narrow(1, column, width);
    const at::Tensor left = a[batch].narrow(0, row, height),
                     right = b[batch].narrow(1, column, width);
    if (add) {
      at::addmm_out(tile, tile, left, right);
    } else {
      at::mm_out(tile, left, right);
    }
  });
}

}  // namespace

at::Tensor LinearProduct(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!IsTiled(x, weight)) return at::linear(x, weight, bias);
  const at::Tensor rows = x.reshape({-1, weight.size(1)});
  at::Tensor product = at::empty({rows.size(0), weight.size(0)}, x.options());
  Tiled(product.unsqueeze(0), rows.unsqueeze(0), weight.t().unsqueeze(0), /*add=*/false);
  if (bias.defined()) product.add_(bias);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return product.view(shape);
}

at::Tensor BatchProduct(const at::Tensor& a, const at::Tensor& b) {
  if (!IsTiled(a, b)) return at::matmul(a, b);
  const auto batch = [](const at::Tensor& x) { return x.dim() == 3 ? x : x.flatten(0, -3); };
  std::vector<int64_t> shape = a.sizes().vec();
  OSCAR_CHECK(a.sizes().slice(0, shape.size() - 2) == b.sizes().slice(0, shape.size() - 2));
  shape.back() = b.size(-1);
  at::Tensor product = at::empty(shape, a.options());
  Tiled(batch(product), batch(a), batch(b), /*add=*/false);
  return product;
}

void BatchProductInto(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, bool add) {
  if (!IsTiled(a, b)) {
    at::baddbmm_out(sum, sum, a, b, /*beta=*/add ? 1 : 0);
  } else {
    Tiled(sum, a, b, add);
  }
}

}  // namespace oscar
