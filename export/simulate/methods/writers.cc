// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that keep existing rotations and only change how codes are written: scales fitted to
// codes (linalg/scale_fit.h) and error feedback (linalg/error_feedback.h). Feedback minimizes the
// error of keys in the metric of the queries (from the artifact's moments), and that of values in
// the metric of o_proj. Bits, format and reader stay the same.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "calib/cache/side_tensors.h"
#include "calib/fit/feedback_fit.h"
#include "export/simulate/chosen_cache.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

enum class Feedback { kNone, kKeys, kBoth };

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Returns the factors of every KV head, [num_kv_heads, dim, dim].
at::Tensor Factors(const CacheSide& side, const LayerMoments& moments,
                   const std::function<Matrix(int64_t head)>& metric, std::string_view what) {
  return MatricesOf(FeedbackFactors(side, moments.num_kv_heads, metric, what), side.dim, side.dim);
}

CacheSides FactorsOf(const MethodContext& context, size_t layer_index, const CacheSide& k,
                     const CacheSide& v, Feedback feedback) {
  if (feedback == Feedback::kNone) return {};
  const LayerMoments moments = ArtifactMoments(context, layer_index);
  const auto what = [&](const char* side) {
    return fmt::format("layer {}, error feedback of {}", moments.layer_id, side);
  };
  CacheSides factors;
  if (k.feedback.empty()) {  // otherwise the choice already has feedback
    factors.k = Factors(
        k, moments, [&](int64_t head) { return moments.QueryCovariance(head); }, what("keys"));
  }
  if (feedback == Feedback::kKeys) return factors;
  const at::Tensor weight =
      context.options().output_projection(layer_index).to(at::kCPU, at::kDouble).contiguous();
  const Matrix projection =
      Eigen::Map<const RowMajor>(weight.const_data_ptr<double>(), weight.size(0), weight.size(1));
  factors.v = Factors(
      v, moments, [&](int64_t head) { return OutputMetric(projection, moments, head); },
      what("values"));
  return factors;
}

CacheSide HadamardSide(int64_t dim) {
  const at::Tensor matrix = HadamardTensor(dim).to(at::kDouble).contiguous();
  const double* values = matrix.const_data_ptr<double>();
  CacheSide side;
  side.num_rotations = 1;
  side.dim = dim;
  side.rotation.assign(values, values + matrix.numel());
  return side;
}

// The rotations and clip ratios of a layer's keys and values.
struct TurnedSides {
  CacheSide k, v;
  ClipPair clip;
};
using TurnedSidesOf = TurnedSides (*)(const MethodContext&, size_t layer_index, const ArmOptions&);

TurnedSides Hadamard(const MethodContext& context, size_t layer_index, const ArmOptions& options) {
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  return {HadamardSide(spec.head_dim), HadamardSide(spec.v_head_dim), GivenClip(context, options)};
}

TurnedSides PerHead(const MethodContext& context, size_t layer_index, const ArmOptions& options) {
  const StoredLayer& layer = context.Stored(layer_index);
  return {layer.k, layer.v, ArtifactClip(layer, options)};
}

TurnedSides Shared(const MethodContext& context, size_t layer_index, const ArmOptions& options) {
  const StoredLayer& layer = context.Stored(layer_index);
  const StoredSide &k = SharedSide(layer.k, layer.k_shared),
                   &v = SharedSide(layer.v, layer.v_shared);
  return {k, v, ArmClip(options, {k.clip_ratio, v.clip_ratio})};
}

struct Row {
  std::string_view name, description;
  CacheMethod (*without)();
  TurnedSidesOf sides;  // nullptr: the automatic choice, which has its own rule for scales
  Feedback feedback = Feedback::kKeys;
  bool fitted_scales = false;
};

RotatedSides SidesOf(const Row& row, const MethodContext& context, size_t layer_index,
                     const ArmOptions& options) {
  const TurnedSides sides = row.sides(context, layer_index, options);
  RotatedSides rotated =
      AffineSides(context, RotationTensor(sides.k), RotationTensor(sides.v), sides.clip);
  if (row.fitted_scales) {
    rotated.k.codes.scales = FittedScales(/*of_keys=*/true);
    rotated.v.codes.scales = FittedScales(/*of_keys=*/false);
  }
  CacheSides factors = FactorsOf(context, layer_index, sides.k, sides.v, row.feedback);
  rotated.k.feedback = std::move(factors.k);
  rotated.v.feedback = std::move(factors.v);
  return rotated;
}

LayerCache Chosen(const Row& row, const MethodContext& context, size_t layer_index,
                  const ArmOptions& options) {
  const StoredChoice& choice = ChoiceOf(context, layer_index);
  return ChoiceCache(choice, context.layers()[layer_index].attention.num_kv_heads,
                     ArmWindows(context, options),
                     FactorsOf(context, layer_index, choice.k, choice.v, row.feedback));
}

constexpr Row kRows[] = {
    {"hadamard_feedback", "Hadamard, keys written with error feedback", HadamardInt2Method,
     Hadamard},
    {"oscar_shared_feedback", "OSCAR, one rotation, keys written with error feedback",
     OscarSharedMethod, Shared},
    {"oscar_shared_feedback_kv", "OSCAR, one rotation, both sides written with error feedback",
     OscarSharedMethod, Shared, Feedback::kBoth},
    {"oscar_per_head_feedback", "OSCAR, keys written with error feedback", OscarPerHeadMethod,
     PerHead},
    {"auto_feedback", "the automatic choice, keys written with error feedback", AutoChoiceMethod,
     nullptr},
    {"oscar_shared_fitted", "OSCAR, one rotation, scales fitted to codes", OscarSharedMethod,
     Shared, Feedback::kNone, true},
};

// Returns the method of a row: `without`, plus the row's changes to the writer.
CacheMethod Method(const Row& row) {
  CacheMethod method = row.without();
  method.name = row.name;
  method.description = row.description;
  const bool values = row.feedback == Feedback::kBoth;
  if (values)
    method.why_no_latents = "it rounds values with regard to o_proj, separately from keys";
  method.make = [row](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
    return row.sides ? RotatedCache(context, options, SidesOf(row, context, layer_index, options))
                     : Chosen(row, context, layer_index, options);
  };
  method.available = [row, values, available = method.available](const MethodContext& context) {
    return (row.feedback == Feedback::kNone || HasFit(context)) &&
           (!available || available(context)) && (!values || context.options().output_projection);
  };
  return method;
}

}  // namespace

RotatedSides FedPerHeadSides(const MethodContext& context, size_t layer_index) {
  constexpr Row kRow = {"", "", OscarPerHeadMethod, PerHead, Feedback::kKeys, true};
  return SidesOf(kRow, context, layer_index, {.clip = true});
}

std::vector<CacheMethod> WriterMethods() {
  std::vector<CacheMethod> methods;
  for (const Row& row : kRows) methods.push_back(Method(row));
  return methods;
}

}  // namespace oscar
