// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The fields of the exported files are described in export/formats/sglang_choice.h.
#include "export/simulate/runtime_choice.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "calib/cache/bf16_arithmetic.h"
#include "calib/cache/side_tensors.h"  // MatricesOf
#include "capture/model/run/device.h"
#include "export/artifact/choice_demands.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

at::Tensor Vectors(const std::vector<double>& values, int64_t dim) {
  return MatricesOf(values, 1, dim).squeeze(1);  // [num_kv_heads, dim]
}

}  // namespace

std::string ServedChoice(const RuntimeSpec& runtime, const Artifact& artifact) {
  if (!artifact.has_choices()) return {};
  const bool folds = artifact.Choice().value("fold_checkpoint", false);
  const std::string_view made_for = runtime.choice.empty() ? runtime.runtime : runtime.choice;
  const std::string like_headline = artifact.FindChoice(made_for, folds);
  return like_headline.empty() ? artifact.FindChoice(made_for, !folds) : like_headline;
}

RotatedSides SidesOfChoice(const StoredChoice& choice) {
  const auto side = [](const CacheSide& of, const AffineQuantizer& codes) {
    RotatedQuantizer quantizer{.rotation = MatricesOf(of.rotation, of.dim, of.dim), .codes = codes};
    if (!of.query_rotation.empty()) {
      quantizer.inverse =
          MatricesOf(of.query_rotation, of.dim, of.dim).transpose(1, 2).contiguous();
    }
    // Loaders read this field, like all others, in the type of the cache's windows (bf16).
    if (!of.mean.empty()) quantizer.mean = RoundedToBf16(Vectors(of.mean, of.dim));
    return quantizer;
  };
  RotatedSides sides{side(choice.k, choice.k_codes), side(choice.v, choice.v_codes)};
  if (!choice.k.pair_scale.empty()) sides.pair_scale = Vectors(choice.k.pair_scale, choice.k.dim);
  return sides;
}

RotatedSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                        size_t layer_index) {
  const Artifact& artifact = context.artifact();
  const std::string name = ServedChoice(runtime, artifact);
  if (name.empty()) {
    throw InputError(
        fmt::format("{}: contains no automatic choice for {}; make one with oscar-calibrate",
                    artifact.directory().string(), runtime.runtime));
  }
  return SidesOfChoice(artifact.ReadChoice(context.layers()[layer_index].layer_id, name));
}

LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale) {
  // The scales on the rows' device, [heads, 1, d]; shared by the functions below.
  const auto scale_at = [scale = std::make_shared<at::Tensor>(pair_scale)](const at::Tensor& rows) {
    *scale = SendTo(*scale, rows.device());
    return scale->unsqueeze(1);
  };
  const auto scaled = [=](const at::Tensor& rows, bool keys) {
    at::Tensor folded = RoundedToBf16(rows);
    if (pair_scale.defined()) {
      const at::Tensor scale = scale_at(rows);
      const at::Tensor heads = folded.unflatten(1, {pair_scale.size(0), -1});
      folded = RoundedToBf16(keys ? heads.mul(scale) : heads.div(scale)).flatten(1, 2);
    }
    return folded.to(ResultType(rows));
  };
  const auto undone = [=](const at::Tensor& rows, bool keys) {
    if (!pair_scale.defined() || !rows.defined()) return rows;
    const at::Tensor scale = scale_at(rows).to(rows.scalar_type());
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
