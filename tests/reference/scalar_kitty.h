// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the key pages in linalg/kitty_page.h, one channel at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linalg/affine_families.h"
#include "linalg/kitty_page.h"

namespace oscar {

// Returns whether each channel of page [tokens, channels] is boosted. The channels with the highest
// mean |k| are; among equal means, the lower channel comes first. Sums over tokens are TreeSums.
template <typename T>
std::vector<bool> BoostedChannels(std::span<const T> page, const KittyShape& shape, double ratio);

template <typename T>
struct KittyPage {
  std::vector<uint8_t> codes;      // [tokens, channels]; 4 bits if boosted, else 2
  std::vector<T> scales, offsets;  // [channels], as stored
  std::vector<bool> boosted;       // [channels]
};

// `rule` is of family A2, with the rounding and lower bounds of a variant; its `bits` is ignored.
template <typename T>
KittyPage<T> EncodeKittyPage(std::span<const T> page, const KittyShape& shape, double ratio,
                             const AffineRule& rule);
template <typename T>
void DecodeKittyPage(const KittyPage<T>& page, std::span<T> y);  // [tokens, channels]

}  // namespace oscar
