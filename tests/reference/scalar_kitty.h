// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The pages of linalg/kitty_page.h, one channel at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linalg/affine_families.h"
#include "linalg/kitty_page.h"

namespace oscar {

// Whether a channel is boosted, [channels]: the highest means of |k|, the lower channel first where
// they tie; tree sums over tokens. page [tokens, channels].
template <typename T>
std::vector<bool> BoostedChannels(std::span<const T> page, const KittyShape& shape, double ratio);

template <typename T>
struct KittyPage {
  std::vector<uint8_t> codes;      // [tokens, channels], 0 to 15 where boosted
  std::vector<T> scales, offsets;  // [channels], as stored
  std::vector<bool> boosted;       // [channels]
};

// `rule`: family A2 with the rounding and floors of a variant; its bits are not read.
template <typename T>
KittyPage<T> EncodeKittyPage(std::span<const T> page, const KittyShape& shape, double ratio,
                             const AffineRule& rule);
template <typename T>
void DecodeKittyPage(const KittyPage<T>& page, std::span<T> y);  // [tokens, channels]

}  // namespace oscar
