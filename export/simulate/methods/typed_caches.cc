// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of each layer's cache that oscar-calibrate --for modelopt (or a similar runtime) chose,
// simulated as that runtime serves them: rows are not rotated, and scales come from the largest
// magnitudes of the calibration. For comparison, other methods here choose types again within the
// same budget of bits, each by a different measure of cost.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "capture/files/removed_names.h"
#include "export/artifact/cache_type_record.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/typed_cache.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

std::vector<LayerTypes> TypesOf(const MethodContext& context, std::optional<BitPrice> price) {
  const std::optional<CacheTypeRecord> record = CacheTypesOf(context.artifact());
  if (!record) {
    throw InputError(
        context.artifact().directory().string() +
        ": contains no per-layer types; measure their costs with oscar-calibrate --for "
        "modelopt --bits B");
  }
  if (!price) return record->types;
  const TypedRuntime* runtime = FindTypedRuntime(record->runtime);
  if (runtime == nullptr || !Knows(record->layers, *runtime)) {
    const std::string hint = RemovedHint(record->runtime);
    throw InputError(fmt::format("{}: types for {}{}", context.artifact().directory().string(),
                                 record->runtime, hint.empty() ? "" : ", which " + hint));
  }
  return PlanTypes(*runtime, record->layers, record->bits, *price).layers;
}

CacheMethod Method(std::string_view name, std::string_view description,
                   std::optional<BitPrice> price) {
  CacheMethod method = TokenMethod(
      name, description,
      [price](const MethodContext& context, size_t layer_index) {
        const auto largest = [&, id = context.layers()[layer_index].layer_id](char side) {
          const std::vector<double> maxima = context.artifact().AbsMax(id, side);
          return maxima.empty() ? 0 : static_cast<float>(std::ranges::max(maxima));
        };
        return TypedSides(TypesOf(context, price).at(layer_index), {largest('k'), largest('v')});
      },
      [price](const MethodContext& context, const ArmOptions&, int64_t) {
        const std::vector<LayerTypes> types = TypesOf(context, price);
        return MeanOverCache(context.layers(), 1, [&](size_t i, bool keys) {
          const AttentionSpec& spec = context.layers()[i].attention;
          const int64_t dim = keys ? spec.head_dim : spec.v_head_dim;
          const double bits = static_cast<double>(spec.num_kv_heads * dim) *
                              StoredBits(keys ? types[i].k : types[i].v);
          return CacheCost{bits, bits};
        });
      });
  method.takes_windows = method.takes_bf16 = false;
  method.why_no_latents = "it has separate types for keys and values";
  method.available = [](const MethodContext& context) {
    return CacheTypesOf(context.artifact()).has_value();
  };
  return method;
}

}  // namespace

std::vector<CacheMethod> CacheTypeMethods() {
  return {Method("cache_types",
                 "per-layer types, as chosen for a runtime with types of 8 and 4 bits", {}),
          Method("cache_types_next_token",
                 "per-layer types within the same budget, by the KL of the next token",
                 BitPrice::kNextToken),
          Method("cache_types_attention", "per-layer types within the same budget, by attention-KL",
                 BitPrice::kAttention),
          Method("cache_types_uniform",
                 "types within the same budget, as equal for all layers as possible",
                 BitPrice::kUniform)};
}

}  // namespace oscar
