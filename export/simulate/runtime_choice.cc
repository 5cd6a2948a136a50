// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See runtime_choice.h. Fields of the files: export/formats/sglang_choice.h.
#include "export/simulate/runtime_choice.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "calib/auto_cache.h"  // AutoTensor
#include "calib/bf16_arithmetic.h"
#include "export/artifact/choice_demands.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

// --runtime and --for have the same names.
const ConsumerRules& RulesOfRuntime(const RuntimeSpec& runtime) {
  const auto found = std::ranges::find(AllConsumers(), runtime.runtime, &ConsumerRules::name);
  OSCAR_CHECK(found != AllConsumers().end());
  return *found;
}

std::vector<std::string> NotCarried(const RuntimeSpec& runtime, const MethodContext& context) {
  ChoiceDemands demands;
  for (size_t i = 0; i < context.layers().size(); ++i) {
    const StoredLayer& layer = context.Stored(i);
    demands.Add(layer.layer_id, *layer.automatic);
  }
  return demands.NotCarriedBy(RulesOfRuntime(runtime));
}

at::Tensor Vectors(const std::vector<double>& values, int64_t dim) {
  return AutoTensor(values, 1, dim, at::empty({})).squeeze(1);  // [num_kv_heads, dim]
}

}  // namespace

bool CarriesChoice(const RuntimeSpec& runtime, const MethodContext& context) {
  return context.artifact().has_choices() && NotCarried(runtime, context).empty();
}

bool CarriesChoice(const RuntimeSpec& runtime, const Artifact& artifact) {
  return artifact.has_choices() &&
         DemandsOf(artifact).NotCarriedBy(RulesOfRuntime(runtime)).empty();
}

ChosenSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                       size_t layer_index) {
  const std::string where = context.artifact().directory().string();
  if (!context.artifact().has_choices()) {
    throw InputError(
        fmt::format("{}: holds no automatic choice; make it with oscar-calibrate --for {}", where,
                    runtime.runtime));
  }
  if (const auto lost = NotCarried(runtime, context); !lost.empty()) {
    throw InputError(
        fmt::format("{}: {} cannot load its automatic choice, which has {}; make one "
                    "with oscar-calibrate --for {}",
                    where, runtime.runtime, fmt::join(lost, "; "), runtime.runtime));
  }
  const StoredChoice& choice = *context.Stored(layer_index).automatic;
  const auto side = [&](const AutoSide& of, const std::vector<double>& clip) {
    const at::Tensor like = at::empty({});
    RotatedQuantizer quantizer{
        .rotation = AutoTensor(of.rotation, of.dim, of.dim, like),
        .clip_ratio = clip.at(0),
        .quant_group_size = choice.quant_group_size == 0 ? of.dim : choice.quant_group_size};
    if (!of.query_rotation.empty()) {
      quantizer.inverse =
          AutoTensor(of.query_rotation, of.dim, of.dim, like).transpose(1, 2).contiguous();
    }
    // Loaded in the type of the cache's windows, as every other field.
    if (!of.mean.empty()) quantizer.mean = RoundedToBf16(Vectors(of.mean, of.dim));
    return quantizer;
  };
  ChosenSides sides{side(choice.k, choice.k_clip), side(choice.v, choice.v_clip), {}};
  if (!choice.k.pair_scale.empty()) sides.pair_scale = Vectors(choice.k.pair_scale, choice.k.dim);
  return sides;
}

LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale) {
  const auto scaled = [pair_scale](const at::Tensor& rows, bool keys) {
    at::Tensor folded = RoundedToBf16(rows);
    if (pair_scale.defined()) {
      const at::Tensor scale = pair_scale.to(rows.device()).unsqueeze(1);  // [heads, 1, d]
      const at::Tensor heads = folded.unflatten(1, {pair_scale.size(0), -1});
      folded = RoundedToBf16(keys ? heads.mul(scale) : heads.div(scale)).flatten(1, 2);
    }
    return folded.to(ResultType(rows));
  };
  const auto undone = [pair_scale](const at::Tensor& rows, bool keys) {
    if (!pair_scale.defined() || !rows.defined()) return rows;
    const at::Tensor scale = pair_scale.to(rows.device(), rows.scalar_type()).unsqueeze(1);
    const at::Tensor heads = rows.unflatten(1, {pair_scale.size(0), -1});
    return (keys ? heads.div(scale) : heads.mul(scale)).flatten(1, 2);
  };
  LayerCache folded{.store = {}, .k_exact = cache.k_exact, .v_exact = cache.v_exact};
  folded.store = [=, store = std::move(cache.store)](const CacheSides& rows) {
    const at::Tensor k = scaled(rows.k, true);
    CachedRows cached = store({k, RoundedToBf16(rows.v).to(ResultType(rows.v))});
    if (!cached.exact.k.defined() && pair_scale.defined()) cached.exact.k = k;
    cached.quantized.k = undone(cached.quantized.k, true);
    cached.exact.k = undone(cached.exact.k, true);
    return cached;
  };
  folded.queries = [=, inner = std::move(cache.queries)](const at::Tensor& queries) {
    const at::Tensor q = scaled(queries, false);
    return undone(inner ? inner(q) : q, false);
  };
  return folded;
}

}  // namespace oscar
