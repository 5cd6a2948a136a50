// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What QuantizeTile (tile_codec.cuh) does, with error feedback: any dimension, bits and group.
#pragma once

#include "export/cuda/write/feedback_rows.cuh"

namespace oscar {

// Fits of a warp's tile.
constexpr int FeedbackTileBytes(const PagedSide& side) {
  return 16 * GroupsPerRow(side) * static_cast<int>(sizeof(AffineGroup<float>));
}

// Quantizes the tokens `tile.quantized` of `y` (shared memory [16][stride words]), which it
// overwrites, into the record. `planes` and `fits` [16 tokens][groups] are scratch of this warp.
__device__ inline void QuantizeTileWithFeedback(const WriteArguments& a, const SideArguments& s,
                                                const TokenTile& tile, int head, uint32_t* y,
                                                int stride, uint32_t* planes,
                                                AffineGroup<float>* fits) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int g = lane / 4;
  const int dim = s.side.dim;
  const int max_code = MaxCode(s.side.bits);
  const int groups = dim / s.side.quant_group_size;
  const int group_octets = s.side.quant_group_size / 8;
  const MetadataType type = a.view.format.metadata;
  const LaneRows rows{y + g * stride + lane % 4, stride, dim / 8};
  uint8_t* record = TileRecord(a, tile, head);
  for (int i = lane; i < CodeBytes(s.side) / 4; i += 32) planes[i] = 0;
  bool good[2];
  for (int h = 0; h < 2; ++h) {
    const int t = g + 8 * h;
    float max = 0;
    good[h] = true;
    for (int o = 0; o < rows.octets; ++o) {
      const uint32_t word = rows.Word(h, o);
      max = fmaxf(max, fmaxf(fabsf(LowBf16(word)), fabsf(HighBf16(word))));
      good[h] = good[h] && isfinite(LowBf16(word)) && isfinite(HighBf16(word));
    }
    const float threshold = ClipThresholdOfRow(rows, h, s.clip_index, a.bisect, QuadMax(max));
    for (int i = 0; i < groups; ++i) {
      const AffineGroup<float> affine =
          FitOctets(rows, h, i * group_octets, (i + 1) * group_octets, threshold, max_code);
      good[h] = IsStorable(affine, type) && good[h];
      if (lane % 4 == 0) fits[t * groups + i] = affine;
    }
    good[h] = QuadSum(good[h] ? 0 : 1) == 0;
    if ((tile.quantized >> t & 1) == 0 || lane % 4 != 0) continue;
    if (!good[h]) atomicAdd(a.bad_rows, 1U);
    for (int i = 0; i < groups; ++i)
      StoreAffine(
          record + s.metadata_offset, type, t, i,
          good[h] ? fits[t * groups + i] : AffineGroup<float>{__uint_as_float(0x7FC00000U), 0});
  }
  __syncwarp();

  const AffineGroup<float>* own = fits + lane % 16 * groups;
  float widest = 0;
  for (int i = 0; i < groups; ++i) widest = fmaxf(widest, StoredAffine(own[i], type).scale);
  const uint32_t values = SharedAddress(y);
  const float unit = s.feedback_units[head];
  FeedBack<1, false, 0>(
      dim, s.side.bits, s.feedback + int64_t{head} * dim * FeedbackStride(dim), FeedbackStride(dim),
      [&](int row, int c) { return values + row * stride * 4 + c * 16; },
      [&](int first) {
        const auto stored = StoredAffine(own[first / s.side.quant_group_size], type);
        return FitFeedback(stored, s.side.bits, unit,
                           fminf(__fdiv_rn(widest, stored.scale), kMostWider),
                           __fdiv_rn(stored.scale, widest));
      });

  for (int h = 0; h < 2; ++h) {
    if (!good[h]) continue;
    for (int o = 0; o < rows.octets; ++o) {
      // Codes of octet o, four to a word, in the second half of its block.
      const uint32_t word = y[(g + 8 * h) * stride + o / 2 * 8 + 4 + o % 2 * 2 + lane % 4 / 2];
      const uint32_t pair = __byte_perm(word, 0, lane % 2 == 0 ? 0x4140 : 0x4342);
      AddCodes(planes, s.side, h, o, pair);
    }
  }
  __syncwarp();
  StorePlanes(record, s, planes, tile.quantized);
}

}  // namespace oscar
