// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic whose results are right: drills, word problems, sequences, conversions.
#include <fmt/format.h>

#include "capture/text/corpus/genres.h"

namespace oscar {
namespace {

std::string Drill(SplitMix64& random) {
  std::string text;
  for (int i = 0; i < 6; ++i) {
    const int64_t a = random.Between(12, 999);
    const int64_t b = random.Between(2, 99);
    switch (random.Below(4)) {
      case 0:
        text += fmt::format("{} + {} = {}\n", a, b, a + b);
        break;
      case 1:
        text += fmt::format("{} - {} = {}\n", a, b, a - b);
        break;
      case 2:
        text += fmt::format("{} × {} = {}\n", a, b, a * b);
        break;
      default:
        text += fmt::format("{} : {} = {} remainder {}\n", a, b, a / b, a % b);
    }
  }
  return text;
}

std::string WordProblem(SplitMix64& random) {
  const int64_t boxes = random.Between(3, 40);
  const int64_t each = random.Between(4, 36);
  const int64_t broken = random.Between(1, boxes);
  const int64_t price = random.Between(2, 15);
  const int64_t left = boxes * each - broken;
  return fmt::format(
      "A shop receives {0} boxes with {1} cups each, and {2} cups are broken. There are {0} × {1} "
      "= "
      "{3} cups, so {3} - {2} = {4} can be sold. At {5} coins each they bring {4} × {5} = {6} "
      "coins.\n",
      boxes, each, broken, boxes * each, left, price, left * price);
}

std::string Sequence(SplitMix64& random) {
  const int64_t step = random.Between(2, 13);
  int64_t value = random.Between(1, 50);
  const bool doubling = random.Below(2) == 0;
  std::string text = doubling ? "Doubling: " : fmt::format("In steps of {}: ", step);
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", value);
    value = doubling ? value * 2 : value + step;
  }
  return text + ".\n";
}

std::string Conversion(SplitMix64& random) {
  const int64_t metres = random.Between(120, 98000);
  const int64_t seconds = random.Between(61, 90000);
  return fmt::format(
      "{} m are {}.{:03} km; {} seconds are {} h {} min {} s; {} in binary is {:b}, in hexadecimal "
      "{:x}.\n",
      metres, metres / 1000, metres % 1000, seconds, seconds / 3600, seconds / 60 % 60,
      seconds % 60, metres % 4096, metres % 4096, metres % 4096);
}

std::string Factors(SplitMix64& random) {
  const int64_t number = random.Between(60, 5000);
  int64_t rest = number;
  std::string factors;
  for (int64_t p = 2; rest > 1; ++p) {
    for (; rest % p == 0; rest /= p)
      factors += fmt::format("{}{}", factors.empty() ? "" : " · ", p);
  }
  return fmt::format("{} = {}{}\n", number, factors,
                     factors.find(' ') == std::string::npos ? " (prime)" : "");
}

}  // namespace

std::string MakeNumbers(SplitMix64& random, size_t target_bytes, size_t variant) {
  static constexpr std::string (*kKinds[])(SplitMix64&) = {Drill, WordProblem, Sequence, Conversion,
                                                           Factors};
  size_t next = variant;
  return Fill(target_bytes, "\n", [&] { return kKinds[next++ % std::size(kKinds)](random); });
}

}  // namespace oscar
