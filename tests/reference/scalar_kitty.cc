// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/scalar_kitty.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "linalg/base/check.h"
#include "tests/reference/scalar_affine_families.h"
#include "tests/reference/tree_sum.h"

namespace oscar {
namespace {

template <typename T>
std::vector<T> Channel(std::span<const T> page, size_t channels, size_t channel) {
  std::vector<T> values;
  for (size_t i = channel; i < page.size(); i += channels) values.push_back(page[i]);
  return values;
}

}  // namespace

template <typename T>
std::vector<bool> BoostedChannels(std::span<const T> page, const KittyShape& shape, double ratio) {
  const auto channels = static_cast<size_t>(shape.channels);
  OSCAR_CHECK_EQ(static_cast<int64_t>(page.size()), shape.tokens * shape.channels);
  std::vector<T> scores;
  for (size_t c = 0; c < channels; ++c) {
    std::vector<T> values = Channel(page, channels, c);
    for (T& value : values) value = std::abs(value);
    scores.push_back(TreeSum<T>(values));
  }
  std::vector<size_t> order(channels);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<bool> boosted(channels, false);
  const auto count = static_cast<size_t>(KittyBoostedChannels(ratio, shape.channels));
  for (size_t i = 0; i < count; ++i) boosted[order[i]] = true;
  return boosted;
}

template <typename T>
KittyPage<T> EncodeKittyPage(std::span<const T> page, const KittyShape& shape, double ratio,
                             const AffineRule& rule) {
  KittyPage<T> encoded;
  encoded.codes.resize(page.size());
  encoded.boosted = BoostedChannels(page, shape, ratio);
  const auto channels = static_cast<size_t>(shape.channels);
  std::vector<T> scale_offset(2);
  for (size_t c = 0; c < channels; ++c) {
    AffineRule channel_rule = rule;
    channel_rule.bits = encoded.boosted[c] ? kKittyBoostedBits : kKittyBits;
    const std::vector<T> values = Channel(page, channels, c);
    std::vector<uint8_t> codes(values.size());
    EncodeAffineFamily<T>(values, channel_rule, shape.tokens, codes, scale_offset);
    encoded.scales.push_back(scale_offset[0]);
    encoded.offsets.push_back(scale_offset[1]);
    for (size_t t = 0; t < codes.size(); ++t) encoded.codes[t * channels + c] = codes[t];
  }
  return encoded;
}

template <typename T>
void DecodeKittyPage(const KittyPage<T>& page, std::span<T> y) {
  const size_t channels = page.scales.size();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i % channels;
    y[i] = static_cast<T>(page.codes[i]) * page.scales[c] + page.offsets[c];
  }
}

#define OSCAR_INSTANTIATE(T)                                                                 \
  template std::vector<bool> BoostedChannels(std::span<const T>, const KittyShape&, double); \
  template KittyPage<T> EncodeKittyPage(std::span<const T>, const KittyShape&, double,       \
                                        const AffineRule&);                                  \
  template void DecodeKittyPage(const KittyPage<T>&, std::span<T>)
OSCAR_INSTANTIATE(float);
OSCAR_INSTANTIATE(double);
#undef OSCAR_INSTANTIATE

}  // namespace oscar
