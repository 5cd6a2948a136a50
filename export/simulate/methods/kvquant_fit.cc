// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kvquant_fit.h"

#include <ATen/ATen.h>

#include <span>
#include <utility>

#include "export/simulate/rope_rows.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/kmeans_1d.h"
#include "linalg/stored_float.h"

namespace oscar {
namespace {

// Applies `prepare` to whole sequences and returns their tokens from position `first` on: [tokens,
// channels] float32.
at::Tensor Channels(const std::vector<at::Tensor>& sequences, int64_t first,
                    const std::function<at::Tensor(const at::Tensor&)>& prepare) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& rows : sequences) {
    if (rows.size(0) > first)
      parts.push_back(prepare(rows.to(at::kFloat)).slice(0, first).flatten(1));
  }
  if (parts.empty())
    throw InputError(
        "KVQuant: no calibration sequence is longer than the first tokens that it keeps exact; "
        "give longer text");
  return at::cat(parts);
}

constexpr double kEndRounding = 1e-6;  // tolerance of a normalized float32

at::Tensor Unchanged(const at::Tensor& rows) { return rows; }

at::Tensor ToFloat16(const at::Tensor& x) {
  return x.clamp(-kMaxFloat16, kMaxFloat16).to(at::kHalf).to(at::kFloat);
}

std::vector<float> Centroids(const at::Tensor& u, int64_t clusters, const KvQuantOptions& options) {
  const at::Tensor values = std::get<0>(u.sort()).cpu();
  const std::span<const float> sorted(values.const_data_ptr<float>(),
                                      static_cast<size_t>(values.numel()));
  return KMeans1d(sorted, {}, {clusters, options.max_iterations, options.seed});
}

MeanAndSigma Statistics(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kDouble);
  return {wide.mean().item<double>(), wide.std(/*unbiased=*/false).item<double>()};
}

// Fits levels to normalized values u [n]. Values beyond +-1 are outliers and do not count.
NonuniformFormat FitLevels(const at::Tensor& u, const KvQuantOptions& options) {
  NonuniformFormat format;
  format.bits = options.bits;
  if (options.levels == KvQuantLevels::kUniform) return format;
  // The ends of a range are +-1 up to rounding. A range of width 0 gives NaN, which is not inside.
  const at::Tensor inside = u.abs().le(1 + kEndRounding);
  const at::Tensor inliers = u.masked_select(inside);
  if (inliers.numel() == 0)
    throw InputError(
        "KVQuant: the calibration rows of a layer do not vary, so no levels can be fitted");
  format.levels = Centroids(inliers, int64_t{1} << options.bits, options);
  format.values = format.levels;
  if (options.q_norm) {
    format.values = QNormLevels(format.levels, Statistics(inliers),
                                Statistics(NearestLevels(inliers, format, false)));
  }
  return format;
}

}  // namespace

KvQuantLayer FitKvQuant(const RopeSpec& rope, const CalibrationRows& rows,
                        const KvQuantOptions& options) {
  KvQuantLayer layer;
  if (options.bits == 0) return layer;
  const auto undo = [&rope](const at::Tensor& keys) { return UndoRope(keys, rope); };
  const at::Tensor k = Channels(rows.k, options.first_tokens, undo);
  const TensorRange range = QuantileRange(k, options.kept, 0);
  layer.k_range = {ToFloat16(range.low), ToFloat16(range.high)};
  layer.k = FitLevels(Normalized(k, layer.k_range).flatten(), options);
  const at::Tensor v = Channels(rows.v, options.first_tokens, Unchanged);
  layer.v = FitLevels(Normalized(v, QuantileRange(v, options.kept, 1)).flatten(), options);
  return layer;
}

LayerCache KvQuantCache(const RopeSpec& rope, const KvQuantLayer& layer,
                        const KvQuantOptions& options) {
  const auto store = [rope, layer, options](const CacheSides& rows) {
    const at::ScalarType dtype = ResultType(rows.k);
    const at::Tensor k = rows.k.to(dtype), v = rows.v.to(dtype);
    if (options.bits == 0) return CachedRows{.quantized = {k, v}};
    const auto to_k = k.options();
    const TensorRange range = {layer.k_range.low.to(to_k), layer.k_range.high.to(to_k)};
    const at::Tensor keys =
        RoundTripChannels(UndoRope(k, rope).flatten(1), range, layer.k, options.kept < 1);
    const at::Tensor values = RoundTripTokens(v.flatten(1), options.kept, layer.v);
    return CachedRows{.quantized = {ApplyRope(keys.view(k.sizes()), rope), values.view(v.sizes())}};
  };
  const ExactTokens exact = {options.first_tokens, {}};
  return {.store = store, .k_exact = exact, .v_exact = exact};
}

}  // namespace oscar
