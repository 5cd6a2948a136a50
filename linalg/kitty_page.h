// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Key pages of Kitty (arXiv 2511.18643). The channels with the largest mean |k| over a page of
// tokens are boosted: they get 4 bits, the others 2. A 4-bit code is stored in two 2-bit planes, as
// code = low + 4 high. Every channel has a row of the low plane; only boosted channels have a row
// of the high plane.
//
// One page of one KV head, T tokens (a multiple of 4), d channels, n of them boosted:
//
//   low    uint8 [d, T / 4]   byte i of a channel: tokens 4 i .. 4 i + 3, lowest bits first
//   high   uint8 [n, T / 4]   the same for the boosted channels, in slot order
//   slots  uint8 [d]          row of the high plane; n for a channel that is not boosted
//   scale, offset             float16 [d] each
#pragma once

#include <cmath>
#include <cstdint>

namespace oscar {

inline constexpr int kKittyBits = 2, kKittyBoostedBits = 4;

struct KittyShape {
  int64_t tokens = 128, channels = 128;
};

// floor(ratio * channels + 1e-6)
inline int64_t KittyBoostedChannels(double ratio, int64_t channels) {
  return static_cast<int64_t>(std::floor(ratio * static_cast<double>(channels) + 1e-6));
}

// Bytes of a page in which `boosted` channels have 4 bits.
constexpr int64_t KittyPageBytes(const KittyShape& shape, int64_t boosted) {
  const int64_t plane_row = shape.tokens / 4;
  return (shape.channels + boosted) * plane_row + shape.channels * (1 + 2 * 2);
}

}  // namespace oscar
