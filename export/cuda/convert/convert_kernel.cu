// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/convert/convert_kernel.h"
#include "export/cuda/convert/unpack_pages.cuh"
#include "export/cuda/device/cuda_check.h"

namespace oscar {
namespace {

// Row of token `token` and head in an array of rows.
__device__ int64_t OutputRow(const ConvertArguments& a, int64_t token, int head) {
  return (a.slots != nullptr ? a.slots[token] : token) * a.view.num_kv_heads + head;
}

// Grid: tokens, heads, sides. Threads over the values of a row, or its bytes where packed.
__global__ void FromPagesKernel(const __grid_constant__ ConvertArguments a) {
  const int64_t token = a.begin + blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int side = static_cast<int>(blockIdx.z);
  const RecordSide s = side == 0 ? KeysOfRecord(a.view.format) : ValuesOfRecord(a.view.format);
  const uint8_t* record = RecordOfToken(a.view, a.request, token, head);
  const int t = static_cast<int>(token % kTileTokens);
  const int64_t row = OutputRow(a, blockIdx.x, head);
  const int values = s.side.dim / (a.packed ? 4 : 1);  // bytes of a row of codes
  if (a.codes[side] != nullptr) {
    for (int i = static_cast<int>(threadIdx.x); i < values; i += static_cast<int>(blockDim.x)) {
      uint32_t byte = RecordCode(record, s, t, i);
      for (int j = 1; a.packed && j < 4; ++j)
        byte |= RecordCode(record, s, t, i + j * values) << (2 * j);
      a.codes[side][row * values + i] = static_cast<uint8_t>(byte);
    }
  }
  const int groups = GroupsPerRow(s.side);
  if (a.scales_zeros[side] == nullptr) return;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * groups; i += static_cast<int>(blockDim.x))
    a.scales_zeros[side][row * 2 * groups + i] =
        RecordMetadata(record, s, a.view.format.metadata, MetadataIndex(t, i / 2) + i % 2);
}

// One word of a plane: codes of tokens [begin, end) of the tile from packed rows, others as they
// are. token0: of the tile, counted from a.begin.
__device__ void PackWord(const ConvertArguments& a, const RecordSide& s, int side, uint8_t* record,
                         int64_t token0, int64_t num_tokens, int head, int lane, int word) {
  const int dim = s.side.dim;
  auto* target = reinterpret_cast<uint32_t*>(record + s.codes_offset +
                                             WordByte(PlaneWords(dim, 2), lane, word));
  const bool keys = s.order == CacheOrder::kKeys;
  uint32_t bits = 0;
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    const int half = i / 8;
    const int n = 8 * word + i % 8;
    if (n >= dim / 4) continue;
    const int t = n / (dim / 8) * 8 + (keys ? lane / 4 : 2 * (lane % 4) + half);
    const int d = n % (dim / 8) * 8 + (keys ? 2 * (lane % 4) + half : lane / 4);
    const int64_t token = token0 + t;
    if (token < 0 || token >= num_tokens) continue;
    const int64_t byte = OutputRow(a, token, head) * (dim / 4) + d % (dim / 4);
    const uint32_t code = a.codes[side][byte] >> (2 * (d / (dim / 4))) & 3;
    bits |= code << (16 * half + 2 * (i % 8));
    mask |= 3U << (16 * half + 2 * (i % 8));
  }
  *target = mask == 0xFFFFFFFFU ? bits : (*target & ~mask) | bits;
}

// Grid: tiles, heads, sides. Threads over the words of the plane, then over the metadata.
__global__ void ToPagesKernel(const __grid_constant__ ConvertArguments a) {
  const int64_t tile = a.begin / kTileTokens + blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int side = static_cast<int>(blockIdx.z);
  const RecordSide s = side == 0 ? KeysOfRecord(a.view.format) : ValuesOfRecord(a.view.format);
  uint8_t* record = RecordOfToken(a.view, a.request, tile * kTileTokens, head);
  const int64_t token0 = tile * kTileTokens - a.begin;
  for (int i = static_cast<int>(threadIdx.x); i < 32 * PlaneWords(s.side.dim, 2);
       i += static_cast<int>(blockDim.x))
    PackWord(a, s, side, record, token0, a.num_tokens, head, i % 32, i / 32);
  const int groups = GroupsPerRow(s.side);
  auto* metadata = reinterpret_cast<float*>(record + s.metadata_offset);
  for (int i = static_cast<int>(threadIdx.x); i < kTileTokens * 2 * groups;
       i += static_cast<int>(blockDim.x)) {
    const int t = i / (2 * groups);
    const int value = i % (2 * groups);
    if (token0 + t < 0 || token0 + t >= a.num_tokens) continue;
    metadata[MetadataIndex(t, value / 2) + value % 2] =
        a.scales_zeros[side][OutputRow(a, token0 + t, head) * 2 * groups + value];
  }
}

}  // namespace

void LaunchFromPages(const ConvertArguments& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(a.num_tokens), static_cast<unsigned>(a.view.num_kv_heads),
                  2);
  FromPagesKernel<<<grid, 64, 0, stream>>>(a);
  OSCAR_CUDA_CHECK_LAUNCH("FromPagesKernel");
}

void LaunchToPages(const ConvertArguments& a, cudaStream_t stream) {
  const int64_t last = (a.begin + a.num_tokens - 1) / kTileTokens;
  const dim3 grid(static_cast<unsigned>(last - a.begin / kTileTokens + 1),
                  static_cast<unsigned>(a.view.num_kv_heads), 2);
  ToPagesKernel<<<grid, 128, 0, stream>>>(a);
  OSCAR_CUDA_CHECK_LAUNCH("ToPagesKernel");
}

}  // namespace oscar
