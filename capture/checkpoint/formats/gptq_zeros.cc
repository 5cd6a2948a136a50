// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds how the zero points of a GPTQ file were stored. "gptq" (v1) files store each zero point
// less one. GPTQModel and AutoRound subtract these ones from whole int32 words, with borrows
// between codes, so the ones are added back to words, modulo 2^32. What GPTQModel subtracted
// depends on its version (gptqmodel/utils/model.py, convert_gptq_v2_to_v1_format_module), and the
// tensors of an asymmetric file do not show it:
//   3 bits (codes straddle words): before 7.0.0, its constants for the first and last of three
//     words are swapped; from 7.0.0 (#2763), it subtracts 1 from each code modulo 8 (AutoGPTQ).
//   Modules with another bit width than the file (`dynamic`): before 7.3.2 (#2971), it subtracts
//     the constants of the file's bit width.
//   3 bits, from 1.8.0 to before 2.0.0 (#1280): only the first 32 zero points of a row are stored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <cstring>
#include <optional>
#include <span>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {
namespace {

// A version of GPTQModel: "7.0.0", "6.1.0-dev", "4.3-dev0".
struct Release {
  int major = 0, minor = 0, patch = 0;
  bool final = true;  // false for a development version or a release candidate
  auto operator<=>(const Release&) const = default;
};
constexpr Release kLosesZeros{1, 8, 0, false}, kKeepsZeros{2, 0, 0};
constexpr Release kThreeBitsChange{6, 1, 0, false}, kThreeBitsByCodes{7, 0, 0};
// Development builds of 7.3.1 exist from before and from after the change.
constexpr Release kOwnBitsChange{7, 3, 1, false}, kOwnBits{7, 3, 2};

std::optional<Release> ParseRelease(std::string_view text) {
  Release release;
  std::array<int*, 3> parts = {&release.major, &release.minor, &release.patch};
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *parts[i]);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const bool more = text.size() > 1 && text[0] == '.' && text[1] >= '0' && text[1] <= '9';
    if (i == 0 && !more) return std::nullopt;
    if (!more) break;
    text.remove_prefix(1);
  }
  const std::string_view suffix = text.substr(0, text.find('+'));
  release.final = suffix.empty() || suffix.starts_with(".post");
  return release;
}

// Returns the words that GPTQModel subtracts, in turn, from the words of a row: a one in the lowest
// bit of each code. For 3 bits, these are its own constants, with the first and the last swapped.
std::vector<uint32_t> WordOnes(int bits) {
  if (bits == 3) return {0x24924924U, 0x92492492U, 0x49249249U};
  uint32_t word = 0;
  for (int shift = 0; shift < 32; shift += bits) word |= 1U << shift;
  return {word};
}

// Returns whether all codes in `words` equal `value`.
bool AllAre(uint32_t value, std::span<const uint32_t> words, int bits) {
  const auto width = static_cast<size_t>(bits);
  for (size_t bit = 0; bit + width <= 32 * words.size(); bit += width) {
    const uint64_t high = bit / 32 + 1 < words.size() ? words[bit / 32 + 1] : 0;
    if (((words[bit / 32] | high << 32) >> (bit % 32) & ((1U << width) - 1)) != value) return false;
  }
  return true;
}

// Determines which value was subtracted by looking at the first zero points of a symmetric file,
// where every zero point is the middle code.
void FindSymmetricZeros(PartFinder& finder, const std::string& zeros) {
  WeightStorage& storage = finder.storage();
  const int bits = finder.scheme().bits;
  const uint32_t middle = 1U << (bits - 1);
  const TensorView view = finder.checkpoint().tensor(zeros);
  std::array<uint32_t, 3> first{};
  const size_t count = std::min(first.size(), view.data.size() / sizeof(uint32_t));
  std::memcpy(first.data(), view.data.data(), count * sizeof(uint32_t));
  const std::span<const uint32_t> words(first.data(), count);
  for (const int ones_of : {finder.scheme().file_bits, bits}) {
    const std::vector<uint32_t> ones = WordOnes(ones_of);
    std::array<uint32_t, 3> sum = first;
    for (size_t i = 0; i < count; ++i) sum[i] += ones[i % ones.size()];
    if (!AllAre(middle, std::span(sum).first(count), bits)) continue;
    storage.zero_word_increments = ones;
    return;
  }
  if (!AllAre(middle - 1, words, bits)) {
    finder.Fail(
        zeros,
        fmt::format("does not hold the zero point {} that a symmetric {}-bit file (sym) must have",
                    middle, bits));
  }
  storage.zero_increment = 1;
}

// Determines which value was subtracted by the version of the program that wrote the file.
void FindAsymmetricZeros(PartFinder& finder, const std::string& zeros) {
  const WeightScheme& scheme = finder.scheme();
  WeightStorage& storage = finder.storage();
  if (!scheme.gptqmodel) {
    if (scheme.bits == 3) {
      finder.Fail(zeros,
                  "holds 3-bit zero points in one of two incompatible conventions (AutoGPTQ's or "
                  "GPTQModel's), and quantization_config.meta.quantizer does not say which");
    }
    storage.zero_word_increments = WordOnes(scheme.bits);
    return;
  }
  const std::optional<Release> release = ParseRelease(*scheme.gptqmodel);
  const auto refuse = [&](std::string_view before, std::string_view from) {
    finder.Fail(
        zeros,
        fmt::format(
            "holds zero points that GPTQModel stored in one way up to {} and in another from {}, "
            "and quantization_config.meta.quantizer (gptqmodel:{}) does not say which",
            before, from, *scheme.gptqmodel));
  };
  const bool mixed = scheme.bits != scheme.file_bits;
  if (mixed && (!release || (*release >= kOwnBitsChange && *release < kOwnBits)))
    refuse("7.3.0 (the file's bits)", "7.3.2 (the module's bits)");
  const int ones_of = mixed && *release < kOwnBitsChange ? scheme.file_bits : scheme.bits;
  if (ones_of != 3) {
    storage.zero_word_increments = WordOnes(ones_of);
    return;
  }
  if (!release || (*release >= kThreeBitsChange && *release < kThreeBitsByCodes))
    refuse("6.0.3 (ones subtracted from each word)", "7.0.0 (one subtracted from each code)");
  if (*release < kThreeBitsChange) {
    storage.zero_word_increments = WordOnes(3);
  } else if (mixed) {  // subtracts 3-bit constants from words of other codes
    refuse("6.0.3 (ones subtracted from each word)", "7.3.2 (the module's bits)");
  } else {
    storage.zero_increment = 1;
  }
}

// Throws if the writer lost zero points.
void CheckZerosAreThere(const PartFinder& finder, const std::string& zeros, int64_t rows) {
  if (finder.scheme().bits != 3 || rows <= 32 || !finder.scheme().gptqmodel) return;
  const std::optional<Release> release = ParseRelease(*finder.scheme().gptqmodel);
  if (!release || *release < kLosesZeros || *release >= kKeepsZeros) return;
  finder.Fail(zeros, fmt::format("was written by GPTQModel {}, which kept only the first 32 zero "
                                 "points of 3-bit rows (its #1280); quantize the model again",
                                 *finder.scheme().gptqmodel));
}

}  // namespace

void FindGptqZeros(PartFinder& finder, const std::string& zeros) {
  const WeightScheme& scheme = finder.scheme();
  CheckZerosAreThere(finder, zeros, finder.storage().shape[0]);
  if (!scheme.zero_plus_one) return;
  // Looks at the values only in symmetric files with 3 bits or several bit widths. In other
  // symmetric files all conventions for zero points agree, and reading a tensor would make a page
  // resident.
  const bool shows = scheme.symmetric && (scheme.bits == 3 || scheme.bits != scheme.file_bits);
  shows ? FindSymmetricZeros(finder, zeros) : FindAsymmetricZeros(finder, zeros);
}

}  // namespace oscar
