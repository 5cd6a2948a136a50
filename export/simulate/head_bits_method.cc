// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/head_bits_method.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calib/cache/row_comparison.h"
#include "calib/choose/bit_allocation.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr std::array kBits = {2, 3, 4};
constexpr int64_t kTexts = 4, kRows = 64;

// Sums over rows, by number of bits.  // [num_kv_heads]
struct Sums {
  std::array<at::Tensor, kBits.size()> kl, key_error, value_error;
  at::Tensor energy;
  double rows = 0;
};

void Add(at::Tensor& sum, const at::Tensor& rows) {
  const at::Tensor part = rows.sum({1, 2}, /*keepdim=*/false, at::kDouble).cpu();
  sum = sum.defined() ? sum.add(part) : part;
}

// Positions in the second half of a text, evenly spread; in any case its last.
at::Tensor Positions(int64_t tokens) {
  const int64_t count = std::min(kRows, (tokens + 1) / 2);
  return tokens - 1 -
         at::arange(count, at::kLong).mul((tokens + 1) / 2).div(count, "floor").flip(0);
}

void AddText(const AttentionSpec& spec, const CalibrationRows& rows, size_t text,
             const std::array<LayerCache, kBits.size()>& caches, const ExactTokens& windows,
             Sums& sums) {
  const CacheSides sides{rows.k[text].to(at::kFloat), rows.v[text].to(at::kFloat)};
  RowComparison comparison(spec, sides.k, sides.v, at::kFloat, RowDetail::kKlAndOutput);
  const at::Tensor positions = Positions(sides.k.size(0));
  comparison.SetRows({positions, rows.q[text].index_select(0, positions.to(sides.k.device()))});
  const ExactSides exact[] = {{windows, windows}};
  for (size_t i = 0; i < kBits.size(); ++i) {
    const CachedRows stored = caches[i].store(sides);
    const auto compare = [&](const at::Tensor& k, const at::Tensor& v) {
      return comparison.Compare(comparison.Prepare({k, v, {}, {}}), {}, exact)[0];
    };
    const RowErrors keys = compare(stored.quantized.k, sides.v);
    Add(sums.kl[i], keys.kl);
    Add(sums.key_error[i], keys.output_error_sq);
    Add(sums.value_error[i], compare(sides.k, stored.quantized.v).output_error_sq);
  }
  Add(sums.energy, comparison.reference().output_sq);
  sums.rows += static_cast<double>(positions.size(0) * spec.gqa_ratio());
}

std::vector<size_t> TextsBeyond(const CalibrationRows& rows, const CacheWindows& windows) {
  std::vector<size_t> texts;
  for (size_t i = 0; i < rows.k.size() && std::ssize(texts) < kTexts; ++i) {
    if (rows.k[i].size(0) > windows.sink + windows.recent) texts.push_back(i);
  }
  return texts;
}

}  // namespace

HeadBits ChooseHeadBits(const MethodContext& context, size_t layer_index, double mean_bits,
                        const std::function<LayerCache(int bits)>& make) {
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  const CalibrationRows& rows = context.rows();
  CacheWindows windows = context.options().windows;
  std::vector<size_t> texts = TextsBeyond(rows, windows);
  if (texts.empty()) texts = TextsBeyond(rows, windows = {});
  if (texts.empty()) throw InputError("bits per head need calibration text of at least a token");
  const std::array<LayerCache, kBits.size()> caches = {make(kBits[0]), make(kBits[1]),
                                                       make(kBits[2])};
  Sums sums;
  for (const size_t text : texts) AddText(spec, rows, text, caches, ExactInWindows(windows), sums);

  std::vector<BitPart> parts;  // keys of all heads, then their values
  const auto add = [&](int64_t dim, auto damage) {
    for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
      BitPart part{.elements = static_cast<double>(dim), .points = {}};
      for (size_t i = 0; i < kBits.size(); ++i)
        part.points.push_back({static_cast<double>(kBits[i]), damage(i, head)});
      parts.push_back(std::move(part));
    }
  };
  const auto at = [](const at::Tensor& x, int64_t head) { return x[head].item<double>(); };
  add(spec.head_dim, [&](size_t i, int64_t head) { return at(sums.kl[i], head) / sums.rows; });
  // Priced by the layer: a head's own rate would be that of a few rows.
  const double key_kl = sums.kl[0].mean().item<double>() / sums.rows;
  const double key_error = sums.key_error[0].div(sums.energy).mean().sqrt().item<double>();
  add(spec.v_head_dim, [&](size_t i, int64_t head) {
    return ValueDamage(std::sqrt(at(sums.value_error[i], head) / at(sums.energy, head)), key_kl,
                       key_error);
  });
  HeadBits bits;
  for (const double of_part : AllocateBits(
           parts, mean_bits *
                      static_cast<double>(spec.num_kv_heads * (spec.head_dim + spec.v_head_dim)))) {
    std::vector<int>& side = std::ssize(bits.k) < spec.num_kv_heads ? bits.k : bits.v;
    side.push_back(static_cast<int>(of_part));
  }
  return bits;
}

}  // namespace oscar
