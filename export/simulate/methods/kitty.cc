// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kitty.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/token_blocks.h"
#include "linalg/kitty_page.h"

namespace oscar {
namespace {

constexpr int64_t kValueGroup = 128;  // in channels
constexpr float kSixteenBitFloor = 1e-4F, kFloatFloor = 1e-6F;

bool IsSixteenBit(const at::Tensor& rows) {
  return rows.scalar_type() == at::kBFloat16 || rows.scalar_type() == at::kHalf;
}

CachedRows Store(const CacheSides& rows, const KittyOptions& options) {
  if (!options.quantizes) return {{ComputeRows(rows.k), ComputeRows(rows.v)}, {}};
  const AffineRule k_rule = KittyRule(options.variant, IsSixteenBit(rows.k));
  const AffineRule v_rule = KittyRule(options.variant, IsSixteenBit(rows.v));
  const auto keys = [&](const at::Tensor& pages) {
    return KittyKeysRoundTrip(pages, options.boosted, k_rule);
  };
  return {{ThroughTokenBlocks(rows.k, kKittySink, kKittyPage, keys),
           AffineFamilyRoundTrip(ComputeRows(rows.v), v_rule,
                                 GroupWithin(rows.v.size(-1), kValueGroup))},
          {}};
}

CacheMethod Kitty(std::string_view name, std::string_view description,
                  const KittyOptions& options) {
  return BlockMethod(
      name, description,
      [options](const MethodContext& context) {
        return KittyCache(options, context.options().prefill_tokens);
      },
      [options](const std::vector<LayerSpec>& layers, int64_t tokens) {
        return KittyCost(options, layers, tokens);
      });
}

}  // namespace

AffineRule KittyRule(KittyVariant variant, bool sixteen_bit_rows) {
  AffineRule rule = {
      .family = AffineFamily::kMinOffset, .bits = kKittyBits, .metadata = StoredFloat::kFloat16};
  if (variant == KittyVariant::kKernel) {
    rule.min_scale = kFloatFloor;
    rule.rounding = CodeRounding::kHalfUp;
  } else {
    rule.min_range = sixteen_bit_rows ? kSixteenBitFloor : kFloatFloor;
  }
  return rule;
}

int64_t KittyKeysEnd(int64_t length, int64_t prefill_tokens) {
  const auto pages = [](int64_t tokens) {
    return kKittySink + std::max<int64_t>(0, tokens - kKittySink) / kKittyPage * kKittyPage;
  };
  // Keys of a prefill that exactly fills the buffer stay there.
  const int64_t prefill = std::min(prefill_tokens, length - 1);
  const int64_t prefilled = prefill > kKittySink + kKittyPage ? pages(prefill) : kKittySink;
  // The last step that can have emptied the buffer is the one that appended token length - 2.
  return length - 1 <= prefill ? prefilled : std::max(prefilled, pages(length - 2));
}

at::Tensor KittyKeysRoundTrip(const at::Tensor& pages, double boosted, const AffineRule& rule) {
  const at::Tensor channels = pages.permute({0, 2, 3, 1}).contiguous();  // [.., dim, tokens]
  const at::Tensor scores = TreeSum(channels.abs(), -1).squeeze(-1);
  const at::Tensor order = std::get<1>(scores.sort(/*stable=*/true, -1, /*descending=*/true));
  const int64_t count = KittyBoostedChannels(boosted, scores.size(-1));
  const at::Tensor is_boosted = at::zeros_like(scores, at::kBool)
                                    .scatter_(-1, order.narrow(-1, 0, count), true)
                                    .unsqueeze(-1);
  AffineRule boosted_rule = rule;
  boosted_rule.bits = kKittyBoostedBits;
  const int64_t tokens = channels.size(-1);
  return at::where(is_boosted, AffineFamilyRoundTrip(channels, boosted_rule, tokens),
                   AffineFamilyRoundTrip(channels, rule, tokens))
      .permute({0, 3, 1, 2});
}

LayerCache KittyCache(const KittyOptions& options, int64_t prefill_tokens) {
  const auto keys_end = [prefill_tokens](int64_t length) {
    return KittyKeysEnd(length, prefill_tokens);
  };
  return {.store = [options](const CacheSides& rows) { return Store(rows, options); },
          .k_exact = {kKittySink, keys_end},
          .v_exact = ExactInWindows({kKittySink, kKittyPage + 1})};
}

CacheCost KittyCost(const KittyOptions& options, const std::vector<LayerSpec>& layers,
                    int64_t tokens) {
  // Sinks, key buffer and recent values are always fully allocated.
  const auto kept = static_cast<double>(kKittySink + kKittyPage);
  const int64_t behind = std::max<int64_t>(0, tokens - kKittySink);
  const auto keys = [&](int64_t dim, int64_t) {
    const int64_t boosted = KittyBoostedChannels(options.boosted, dim);
    const double payload = kKittyBits + (kKittyBoostedBits - kKittyBits) *
                                            static_cast<double>(boosted) / static_cast<double>(dim);
    const auto bytes = static_cast<double>(KittyPageBytes({kKittyPage, dim}, boosted));
    return RowBits{PaperRowBits(tokens, kKittySink, dim, payload + kMetadataBits / kKittyPage),
                   8 * bytes * static_cast<double>(behind / kKittyPage) +
                       kKeptBits * kept * static_cast<double>(dim)};
  };
  const auto values = [&](int64_t dim, int64_t) {
    const double bits =
        kKittyBits + kMetadataBits / static_cast<double>(GroupWithin(dim, kValueGroup));
    const auto quantized = static_cast<double>(std::max<int64_t>(0, behind - kKittyPage));
    return RowBits{PaperRowBits(tokens, kKittySink, dim, bits),
                   static_cast<double>(dim) * (quantized * bits + kKeptBits * kept)};
  };
  return MeanCost(layers, tokens, keys, values);
}

std::vector<CacheMethod> KittyMethods() {
  return {
      Kitty("kitty", "Kitty, 1/8 of the key channels in 4 bits, else 2", {}),
      Kitty("kitty_pro", "Kitty-Pro, 1/4 of the key channels in 4 bits, else 2", {.boosted = 0.25}),
      Kitty("kitty_kernel", "Kitty as its kernel rounds", {.variant = KittyVariant::kKernel})};
}

}  // namespace oscar
