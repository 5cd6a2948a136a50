// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The random number generator splitmix64 (Steele, Lea, Flood 2014): a counter and a mixing
// function. Its numbers determine bytes of artifacts and reports, so nothing here uses the
// distributions of a standard library, which differ between implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace oscar {

// The mixing function without the counter step: a bijection on 64 bits that maps 0 to 0.
constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

// Maps the upper 53 bits to [0, 1).
constexpr double UnitInterval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

class SplitMix64 {
 public:
  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() { return MixBits(state_ += 0x9E3779B97F4A7C15U); }
  constexpr double Uniform() { return UnitInterval(Next()); }
  constexpr size_t Below(size_t n) { return static_cast<size_t>(Next() % n); }  // n > 0
  constexpr int64_t Between(int64_t low, int64_t high) {                        // inclusive bounds
    return low + static_cast<int64_t>(Below(static_cast<size_t>(high - low + 1)));
  }
  template <class Container>
  const auto& Pick(const Container& container) {
    return container[Below(std::size(container))];
  }
  template <class Container>
  void Shuffle(Container& items) {
    for (size_t i = std::size(items); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace oscar
