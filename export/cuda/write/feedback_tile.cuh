// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Does what QuantizeTile (tile_codec.cuh) does, with error feedback, for any dimension, bits and
// group.
#pragma once

#include "export/cuda/write/feedback_rows.cuh"

namespace oscar {

// Quantizes the tokens `tile.quantized` of `y` (shared memory [16][stride words]) into the record,
// and overwrites `y`. `planes` and `fits` are scratch space as in QuantizeTile.
__device__ inline void QuantizeTileWithFeedback(const WriteArguments& a, const SideArguments& s,
                                                const TokenTile& tile, int head, uint32_t* y,
                                                int stride, uint32_t* planes,
                                                AffineGroup<float>* fits) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int g = lane / 4;
  const int dim = s.side.dim;
  const int groups = GroupsPerRow(s.side);
  const LaneRows rows{y + g * stride + lane % 4, stride, dim / 8};
  uint8_t* record = TileRecord(a, tile, head);
  for (int i = lane; i < CodeBytes(s.side) / 4; i += 32) planes[i] = 0;
  const RowFits of_rows = FitTileRows(a, s, tile, head, rows, true, record, fits);

  const AffineGroup<float>* own = fits + lane % 16 * groups;
  float widest = 0;
  for (int i = 0; i < groups; ++i) widest = fmaxf(widest, own[i].scale);
  const uint32_t values = SharedAddress(y);
  const float unit = s.feedback_units[head];
  FeedBack<1, false, 0, false>(
      dim, s.side.bits, s.feedback + int64_t{head} * dim * FeedbackStride(dim), FeedbackStride(dim),
      [&](int row, int c) { return values + row * stride * 4 + c * 16; },
      [&](int first) {
        const AffineGroup<float>& stored = own[first / s.side.quant_group_size];
        return FitFeedback(stored, s.side.bits, unit,
                           fminf(__fdiv_rn(widest, stored.scale), kMostWider),
                           __fdiv_rn(stored.scale, widest));
      });

  for (int h = 0; h < 2; ++h) {
    if (!of_rows.good[h]) continue;
    for (int o = 0; o < rows.octets; ++o) {
      // The codes of octet o, four per word, are in the second half of its feedback block.
      const uint32_t word = y[(g + 8 * h) * stride + o / 2 * 8 + 4 + o % 2 * 2 + lane % 4 / 2];
      const uint32_t pair = __byte_perm(word, 0, lane % 2 == 0 ? 0x4140 : 0x4342);
      AddCodes(planes, s.side, h, o, pair);
    }
  }
  __syncwarp();
  StorePlanes(record, s, planes, tile.quantized);
}

}  // namespace oscar
