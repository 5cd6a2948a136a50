// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NSNQuant (arXiv 2505.18231). Keys before rope, and values, are normalized, centred and normalized
// again in blocks of 64 tokens (codecs/nsn_tensor.h). Then rope is applied to the centred keys, a
// Hadamard matrix rotates keys and values, and one codebook rounds both. Readers apply rope to the
// keys' means. Nothing is fitted to a model. Tokens stay exact until their block is full.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/codecs/nsn_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rope_rows.h"
#include "export/simulate/token_blocks.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

struct NsnRow {
  std::string_view name, description;
  int bits;
};

constexpr NsnRow kNsnTable[] = {
    {"nsnquant_2", "NSNQuant: centred in blocks of 64, eight signs and an index for 8 values", 2},
    {"nsnquant_1", "NSNQuant: centred in blocks of 64, an index of 8 bits for 8 values", 1},
};

// Splits rows [tokens, num_kv_heads, dim] into whole blocks. Dimension 0 becomes the block.
at::Tensor Blocks(const at::Tensor& rows) { return rows.unflatten(0, {-1, kNsnBlock}); }

// Quantizes rows [tokens, num_kv_heads, dim] and reads them back. `rope`: that of keys; nullptr for
// values. Its frequencies may depend on the length, so it is applied to a tensor as long as the
// sequence.
at::Tensor NsnSide(const at::Tensor& rows, const RopeSpec* rope, int bits) {
  const int64_t quantized = rows.size(0) / kNsnBlock * kNsnBlock;
  if (quantized == 0) return rows;
  const at::Tensor before = rope == nullptr ? rows : UndoRope(rows, *rope);
  const NsnBlocks blocks = NormalizeShiftNormalize(Blocks(before.slice(0, 0, quantized)));
  const auto turned = [&](const at::Tensor& own) {  // [blocks, tokens, num_kv_heads, dim]
    if (rope == nullptr) return own;
    at::Tensor whole = at::zeros_like(rows);
    whole.slice(0, 0, quantized).copy_(own.flatten(0, 1));
    return Blocks(ApplyRope(whole, *rope).slice(0, 0, quantized));
  };
  const at::Tensor y = HadamardRows(turned(blocks.rows)), read = NsnRead(y, bits);
  const at::Tensor centred = HadamardRows(read.mul(NsnScales(blocks.scales, y, read)));
  const at::Tensor x =
      centred.add(turned(blocks.means.expand_as(blocks.rows))).mul(blocks.norms).flatten(0, 1);
  return at::cat({x, rows.slice(0, quantized)});
}

void CheckWidth(const LayerSpec& layer, int64_t dim) {
  if (dim % kNsnWidth == 0) return;
  throw InputError(
      fmt::format("layer {}: NSNQuant needs a head dimension that is a multiple of {}, found {}",
                  layer.layer_id, kNsnWidth, dim));
}

LayerCache NsnCache(int bits, const LayerSpec& layer) {
  const AttentionSpec& spec = layer.attention;
  CheckWidth(layer, spec.head_dim);
  CheckWidth(layer, spec.v_head_dim);
  const ExactTokens exact = ExactUntilBlocksFill(0, kNsnBlock, 0);
  const auto store = [bits, rope = spec.rope](const CacheSides& rows) {
    return CachedRows{.quantized = {NsnSide(ComputeRows(rows.k), &rope, bits),
                                    NsnSide(ComputeRows(rows.v), nullptr, bits)}};
  };
  return {.store = store, .k_exact = exact, .v_exact = exact};
}

// Counts for each token its codes, a 4-bit norm and a float16 scale. Counts for each block the
// scale and minimum of its norms and, per channel, a 4-bit mean, with scales and minima per group.
double BitsPerValue(int bits, int64_t dim) {
  const auto values = static_cast<double>(dim), block = static_cast<double>(kNsnBlock);
  const int64_t group = dim % kNsnMeanGroup == 0 ? kNsnMeanGroup : dim;
  const double of_token = 4 + 16;
  const double of_block =
      kMetadataBits + 4 * values + kMetadataBits * values / static_cast<double>(group);
  return bits + (of_token + of_block / block) / values;
}

CacheCost NsnCost(int bits, const std::vector<LayerSpec>& layers, int64_t tokens) {
  const auto side = [&](int64_t dim, int64_t) {
    const double per_value = BitsPerValue(bits, dim);
    const int64_t quantized = tokens / kNsnBlock * kNsnBlock;
    return RowBits{
        PaperRowBits(tokens, 0, dim, per_value),
        static_cast<double>(dim) * (static_cast<double>(quantized) * per_value +
                                    kKeptBits * static_cast<double>(tokens - quantized))};
  };
  return MeanCost(layers, tokens, side, side);
}

}  // namespace

std::vector<CacheMethod> NsnQuantMethods() {
  std::vector<CacheMethod> methods;
  for (const NsnRow& row : kNsnTable) {
    methods.push_back(
        {.name = row.name,
         .description = row.description,
         .takes_clip = false,
         .takes_windows = false,
         .make =
             [&row](const MethodContext& context, size_t layer_index, const ArmOptions&) {
               return NsnCache(row.bits, context.layers()[layer_index]);
             },
         .cost = [&row](const MethodContext& context, const ArmOptions&,
                        int64_t tokens) { return NsnCost(row.bits, context.layers(), tokens); }});
  }
  return methods;
}

}  // namespace oscar
