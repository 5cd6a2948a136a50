// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotates rows without quantizing them: any rows, or new tokens on their way into the windows. A
// CTA multiplies tiles of 16 rows by 64 columns of R. It loads the columns all at once, because a
// call is short and bound by memory latency. CTAs that share rows write different columns of them.
// So rows that are rotated in place need one CTA for all columns.
#include <algorithm>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/write/rotate_rows.h"
#include "export/cuda/write/tile_rows.cuh"
#include "export/cuda/write/token_tiles.cuh"

namespace oscar {
namespace {

// Returns the warps per CTA; each has one tile. GPUs with 99 KB of shared memory set the limit.
constexpr int RotateWarps(int dim) { return dim > 256 ? 1 : 2; }
constexpr int ColumnBytes(int dim, bool transposed) {
  return 2 * (transposed ? kPieceColumns * RowStride(dim) : dim * RowStride(kPieceColumns));
}
constexpr int RotateSharedBytes(int dim, bool transposed) {
  return ColumnBytes(dim, transposed) + RotateWarps(dim) * kTileTokens * RowStride(dim) * 2;
}
constexpr int Columns(int dim) { return (dim + kPieceColumns - 1) / kPieceColumns; }

// Loads columns [n0, n0 + 64) of R, or rows if transposed, to shared memory. Columns beyond dim are
// not written.
template <bool kTransposed>
__device__ void LoadColumns(const __nv_bfloat16* matrix, int dim, int n0, __nv_bfloat16* columns) {
  const int row_values = kTransposed ? dim : min(kPieceColumns, dim - n0);
  const int num_rows = kTransposed ? min(kPieceColumns, dim - n0) : dim;
  const __nv_bfloat16* from = matrix + (kTransposed ? int64_t{n0} * dim : n0);
  const int stride = RowStride(kTransposed ? dim : kPieceColumns);
  const int chunks = row_values / 8;
  for (int i = static_cast<int>(threadIdx.x); i < num_rows * chunks;
       i += static_cast<int>(blockDim.x))
    CopyAsync16(SharedAddress(columns + i / chunks * stride + i % chunks * 8),
                from + int64_t{i / chunks} * dim + i % chunks * 8);
  CopyAsyncCommit();
}

// Multiplies the warp's tile x by 64 columns. c[j] holds the result's columns from 8j on.
template <bool kTransposed>
__device__ void MultiplyColumns(const __nv_bfloat16* x, const __nv_bfloat16* columns, int dim,
                                float (&c)[8][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint32_t x_address = SharedAddress(x + lane % 16 * RowStride(dim) + lane / 16 * 8);
#pragma unroll
  for (int j = 0; j < 8; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll 2
  for (int k = 0; k < dim; k += 16) {
    uint32_t a[4];
    LoadMatrices(a, x_address + 2 * k);
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      uint32_t b[4];
      if (kTransposed) {  // rows are n: matrices (n, k), (n, k + 8), (n + 8, k), ...
        LoadMatrices(
            b, SharedAddress(columns + (8 * j + lane / 16 * 8 + lane % 8) * RowStride(dim) + k +
                             lane % 16 / 8 * 8));
      } else {  // rows are k: matrices (k, n), (k + 8, n), (k, n + 8), ...
        LoadMatricesTransposed(
            b, SharedAddress(columns + (k + lane % 16) * RowStride(kPieceColumns) + 8 * j +
                             lane / 16 * 8));
      }
      MmaBf16(c[j], a[0], a[1], a[2], a[3], b[0], b[1]);
      MmaBf16(c[j + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

// Rotates the rows at from(r), for r in [0, num_rows), and writes them to to(r); skips rows for
// which to(r) is null. Computes 64 columns at a time: from 64 * column on, in steps of 64 *
// column_step.
template <bool kTransposed, typename From, typename To>
__device__ void RotateCta(const __nv_bfloat16* matrix, int dim, int64_t first_tile, int column,
                          int column_step, int64_t num_rows, From from, To to) {
  extern __shared__ __align__(16) uint8_t shared[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto* columns = reinterpret_cast<__nv_bfloat16*>(shared);
  auto* x = reinterpret_cast<__nv_bfloat16*>(shared + ColumnBytes(dim, kTransposed)) +
            warp * kTileTokens * RowStride(dim);
  const int64_t row0 = (first_tile + warp) * kTileTokens;
  if (matrix != nullptr) LoadColumns<kTransposed>(matrix, dim, 64 * column, columns);
  LoadTileRows(x, dim, [&](int t) -> const __nv_bfloat16* {
    return row0 + t < num_rows ? from(row0 + t) : nullptr;
  });
  if (matrix == nullptr) {
    if (column == 0)
      StoreTileRows(x, dim, [&](int t) -> __nv_bfloat16* {
        return row0 + t < num_rows ? to(row0 + t) : nullptr;
      });
    return;
  }
  __nv_bfloat16* rows[2];
  for (int h = 0; h < 2; ++h) {
    const int64_t row = row0 + lane / 4 + 8 * h;
    rows[h] = row < num_rows ? to(row) : nullptr;
  }
  for (; 64 * column < dim; column += column_step) {
    CopyAsyncWait<0>();
    __syncthreads();
    float c[8][4];
    MultiplyColumns<kTransposed>(x, columns, dim, c);
    __syncthreads();
    if (64 * (column + column_step) < dim)
      LoadColumns<kTransposed>(matrix, dim, 64 * (column + column_step), columns);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int n = 64 * column + 8 * j;
      if (n >= dim) break;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (rows[h] != nullptr)
          reinterpret_cast<uint32_t*>(rows[h] + n)[lane % 4] =
              PackBf16x2(c[j][2 * h], c[j][2 * h + 1]);
      }
    }
  }
}

template <bool kTransposed>
__global__ void RotateRowsKernel(const __grid_constant__ RotateArguments a, int column_ctas) {
  const int head = static_cast<int>(blockIdx.y);
  const int64_t matrix = head / (a.num_heads / a.num_matrices);
  const auto offset = [&](int64_t row) { return (row * a.num_heads + head) * a.dim; };
  RotateCta<kTransposed>(
      a.rotation + matrix * a.dim * a.dim, a.dim,
      int64_t{blockIdx.x / column_ctas} * RotateWarps(a.dim),
      static_cast<int>(blockIdx.x % column_ctas), column_ctas, a.num_rows,
      [&](int64_t row) { return a.x + offset(row); },
      [&](int64_t row) { return a.y + offset(row); });
}

struct AppendArguments {
  CacheView view;
  const __nv_bfloat16* x[2];
  const __nv_bfloat16* rotation[2];
  bool per_head[2];
  int column_ctas;  // CTAs along the columns of the larger dim
};

__global__ void AppendKernel(const __grid_constant__ AppendArguments a) {
  const int head = static_cast<int>(blockIdx.y);
  const bool values = blockIdx.z == 1;
  const int side = values ? 1 : 0;
  const int dim = values ? a.view.format.v.dim : a.view.format.k.dim;
  const int column = static_cast<int>(blockIdx.x) % a.column_ctas;
  if (64 * column >= dim) return;
  const __nv_bfloat16* matrix = a.rotation[side];
  if (matrix != nullptr && a.per_head[side]) matrix += int64_t{head} * dim * dim;
  const int warps = static_cast<int>(blockDim.x) / 32;
  RotateCta<false>(
      matrix, dim, int64_t{blockIdx.x / a.column_ctas} * warps, column, a.column_ctas,
      a.view.num_requests,
      [&](int64_t request) { return a.x[side] + (request * a.view.num_kv_heads + head) * dim; },
      [&](int64_t request) -> __nv_bfloat16* {
        const int length = a.view.lengths[request];
        if (length < 1) return nullptr;
        return WindowRow(a.view, static_cast<int>(request), head, values, length - 1);
      });
}

int RowCtas(int64_t rows, int dim) {
  const int64_t rows_of_cta = kTileTokens * RotateWarps(dim);
  return static_cast<int>((rows + rows_of_cta - 1) / rows_of_cta);
}

}  // namespace

void LaunchRotateRows(const RotateArguments& arguments, cudaStream_t stream) {
  const auto kernel = arguments.transposed ? RotateRowsKernel<true> : RotateRowsKernel<false>;
  const int dim = arguments.dim;
  const int bytes = RotateSharedBytes(dim, arguments.transposed);
  OSCAR_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const int column_ctas = arguments.x == arguments.y ? 1 : Columns(dim);
  const dim3 grid(static_cast<unsigned>(RowCtas(arguments.num_rows, dim) * column_ctas),
                  static_cast<unsigned>(arguments.num_heads));
  kernel<<<grid, 32 * RotateWarps(dim), bytes, stream>>>(arguments, column_ctas);
  OSCAR_CUDA_CHECK_LAUNCH("RotateRowsKernel");
}

void LaunchAppendTokens(const CacheView& view, const WriteOptions& options, const __nv_bfloat16* k,
                        const __nv_bfloat16* v, cudaStream_t stream) {
  const int dim = std::max(view.format.k.dim, view.format.v.dim);
  const AppendArguments a = {view,
                             {k, v},
                             {options.k.rotation, options.v.rotation},
                             {options.k.per_head, options.v.per_head},
                             Columns(dim)};
  const int bytes = RotateSharedBytes(dim, false);
  OSCAR_CUDA_CHECK(
      cudaFuncSetAttribute(AppendKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const dim3 grid(static_cast<unsigned>(RowCtas(view.num_requests, dim) * a.column_ctas),
                  static_cast<unsigned>(view.num_kv_heads), 2);
  AppendKernel<<<grid, 32 * RotateWarps(dim), bytes, stream>>>(a);
  OSCAR_CUDA_CHECK_LAUNCH("AppendKernel");
}

}  // namespace oscar
