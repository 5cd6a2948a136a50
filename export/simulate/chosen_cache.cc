// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the choice of oscar-calibrate --auto from the artifact's tensors and applies it by the bf16
// arithmetic of calib/cache/side_tensors.h. That code returns transformed rows, but simulators
// return rows in the model's space. So keys are multiplied by the exact inverse of their transform
// and queries by its transpose, which leaves every logit unchanged.
#include "export/simulate/chosen_cache.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/side_tensors.h"
#include "capture/model/run/device.h"
#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Transforms rows [num_kv_heads, tokens, dim] back to keys [tokens, num_kv_heads, dim].
at::Tensor KeysBack(const SidesOnDevice& side, const at::Tensor& rotated, at::ScalarType dtype) {
  const at::Tensor back = side.query_rotation[0][0].transpose(1, 2).to(dtype);
  at::Tensor k = at::matmul(rotated.to(dtype), back);
  if (side.mean.defined()) k = k.add(side.mean[0][0].to(dtype));
  if (side.pair_scale.defined()) k = k.div(side.pair_scale[0][0].to(dtype));
  return k.permute({1, 0, 2}).contiguous();
}

at::Tensor QueriesBack(const SidesOnDevice& side, const at::Tensor& rotated, int64_t num_kv_heads,
                       at::ScalarType dtype) {
  const int64_t rows = rotated.size(0), dim = rotated.size(2);
  at::Tensor q = at::matmul(rotated.to(dtype)
                                .reshape({rows, num_kv_heads, -1, dim})
                                .permute({1, 2, 0, 3})
                                .reshape({num_kv_heads, -1, dim}),
                            side.rotation[0][0].transpose(1, 2).to(dtype));
  if (side.pair_scale.defined()) q = q.mul(side.pair_scale[0][0].to(dtype));
  return q.view({num_kv_heads, -1, rows, dim}).permute({2, 0, 1, 3}).flatten(1, 2);
}

}  // namespace

CacheCost ChoiceCost(const MethodContext& context, const CacheWindows& windows, int64_t tokens,
                     const std::function<StoredChoice(size_t layer_index)>& choice_of) {
  return MeanOverCache(context.layers(), 1, [&](size_t i, bool keys) {
    const AttentionSpec& spec = context.layers()[i].attention;
    const StoredChoice choice = choice_of(i);
    const AffineQuantizer& codes = keys ? choice.k_codes : choice.v_codes;
    const int64_t dim = keys ? spec.head_dim : spec.v_head_dim;
    const double metadata = 16.0 * static_cast<double>(MetadataTypeBytes(codes.metadata));
    const CacheLayout layout{
        .payload_bits = std::accumulate(codes.bits.begin(), codes.bits.end(), 0.0) /
                        static_cast<double>(codes.bits.size()),
        .metadata_bits = std::min(32.0, metadata),
        .actual_metadata_bits = metadata,
        .quant_group_size = codes.quant_group_size == 0 ? dim : codes.quant_group_size,
        .sink_tokens = windows.sink,
        .recent_tokens = windows.recent};
    const auto row = static_cast<double>(spec.num_kv_heads * dim);
    return CacheCost{row * PaperBitsPerElement(layout, tokens),
                     row * ActualBitsPerElement(layout, tokens)};
  });
}

const StoredChoice& ChoiceOf(const MethodContext& context, size_t layer_index) {
  const StoredLayer& layer = context.Stored(layer_index);
  if (!layer.automatic) {
    throw InputError(fmt::format("{}: contains no automatic choice; make one with oscar-calibrate",
                                 context.artifact().directory().string()));
  }
  return *layer.automatic;
}

LayerCache ChoiceCache(const StoredChoice& choice, int64_t num_kv_heads, const ExactTokens& exact,
                       const CacheSides& feedback,
                       const std::function<at::Tensor(const at::Tensor&)>& codec) {
  // Moves the matrices to the rows' device once, not once per sequence.
  const auto side_at = [](const CacheSide& side) {
    return [side, there = SidesOnDevice()](const at::Tensor& rows) mutable -> const SidesOnDevice& {
      if (!there.rotation.defined() || there.rotation.device() != rows.device())
        there = OneSide(side, rows.device());
      return there;
    };
  };
  LayerCache cache{.store = {}, .k_exact = exact, .v_exact = exact};
  const auto store_with = [&](const StoredChoice& written, const CacheSides& factors) {
    return [choice = written, factors, codec, keys_at = side_at(choice.k),
            values_at = side_at(choice.v)](const CacheSides& rows) mutable {
      const at::ScalarType dtype = ResultType(rows.k);
      const SidesOnDevice &keys = keys_at(rows.k), &values = values_at(rows.v);
      const at::Tensor k = KeysOfOne(keys, rows.k), v = ValuesOfOne(values, rows.v);
      const auto values_back = [&](const at::Tensor& rotated) {
        return ValuesBackOfOne(values, rotated).to(dtype).permute({1, 0, 2}).contiguous();
      };
      const auto read = [&](const at::Tensor& turned, const AffineQuantizer& codes,
                            const at::Tensor& factor, const SidesOnDevice& side) {
        if (codec) return codec(turned);
        return QuantizedRows(turned, codes, {}, false,
                             factor.defined() ? SendTo(factor, turned.device()) : FeedbackOf(side));
      };
      return CachedRows{
          .quantized = {KeysBack(keys, read(k, choice.k_codes, factors.k, keys), dtype),
                        values_back(read(v, choice.v_codes, factors.v, values))},
          .exact = {KeysBack(keys, k, dtype), values_back(v)}};
    };
  };
  cache.store = store_with(choice, feedback);
  // A latent row is written once, with the codes of keys.
  StoredChoice of_keys = choice;
  of_keys.v_codes = choice.k_codes;
  cache.otherwise = LayerCache::StoreOnce(
      [store = store_with(of_keys, {feedback.k, feedback.k})](const at::Tensor& rows) mutable {
        return store({rows, rows});
      });
  cache.queries = [num_kv_heads, keys_at = side_at(choice.k)](const at::Tensor& queries) mutable {
    const at::ScalarType dtype = ResultType(queries);
    const SidesOnDevice& keys = keys_at(queries);
    return QueriesBack(keys, QueriesOfOne(keys, queries, num_kv_heads), num_kv_heads, dtype);
  };
  return cache;
}

}  // namespace oscar
