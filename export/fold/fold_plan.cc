// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/fold/fold_plan.h"

#include <fmt/format.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "calib/fit/transform_fit.h"
#include "calib/moments/moments_file.h"
#include "capture/model/spec/use_limits.h"
#include "export/artifact/artifact_format.h"
#include "export/fold/stored_weight.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

template <typename G>
std::string GeometryText(const G& g) {
  return fmt::format("{} query heads, {} KV heads, dimensions {} and {}", g.num_q_heads,
                     g.num_kv_heads, g.head_dim, g.v_head_dim);
}

void CheckGeometry(const LayerMoments& moments, const AttentionSpec& spec) {
  if (GeometryText(moments) == GeometryText(spec)) return;
  throw InputError(fmt::format("layer {}: the artifact was fitted to {}, but the model has {}",
                               moments.layer_id, GeometryText(moments), GeometryText(spec)));
}

std::string_view ScalesName(FoldScales scales) {
  switch (scales) {
    case FoldScales::kAuto:
      return "auto";
    case FoldScales::kChosen:
      return "chosen";
    case FoldScales::kExact:
      return "exact";
    case FoldScales::kPowerOfTwo:
      return "power_of_two";
  }
  return {};
}

// Returns the name of the choice to fold: with `runtime`, the one for it, else the first one that
// folds, beginning with the headline choice. Empty if none folds. If values are rotated, a choice
// without key scales is accepted too.
std::string FoldedChoice(const Artifact& artifact, const FoldOptions& options) {
  if (!options.chosen || (options.runtime.empty() && !artifact.has_choices())) return {};
  const bool rotation = options.values == FoldValues::kRotation;
  if (!options.runtime.empty()) {
    const std::string folded = artifact.FindChoice(options.runtime, /*folded=*/true);
    if (rotation && folded.empty()) return artifact.ChoiceFor(options.runtime, /*folded=*/false);
    return artifact.ChoiceFor(options.runtime, /*folded=*/true);
  }
  if (rotation || artifact.Choice().value("fold_checkpoint", false))
    return std::string(kHeadlineChoice);
  const Json& serving = JsonMember(artifact.manifest(), "serving", kManifestFile);
  for (const Json& row : JsonMember(serving, "runtimes", kManifestFile)) {
    if (row.value("fold_checkpoint", false)) return JsonString(row, "choice", kManifestFile);
  }
  return {};
}

// Returns the source of the key scales; nullopt if keys are not scaled.
std::optional<FoldScales> Resolved(const Artifact& artifact, const std::string& choice,
                                   const FoldOptions& options) {
  const FoldScales scales = options.scales;
  if (scales != FoldScales::kAuto && scales != FoldScales::kChosen) return scales;
  if (!choice.empty()) return FoldScales::kChosen;
  if (scales == FoldScales::kAuto && options.values == FoldValues::kRotation) return {};
  if (scales == FoldScales::kAuto) return FoldScales::kPowerOfTwo;
  throw InputError(
      fmt::format("{}: contains no chosen key scales; give --fold-scales exact or power_of_two to "
                  "make scales from its moments",
                  artifact.directory().string()));
}

// Returns the scales of each KV head. With QK-norm all heads share a weight, so scales that are
// equal for all heads are returned once.
std::vector<Vector> ChosenScales(const StoredChoice& choice, const AttentionSpec& spec) {
  const std::vector<double>& all = choice.k.pair_scale;
  if (all.empty()) return {};
  std::vector<Vector> scales;
  for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
    const Vector d = Eigen::Map<const Vector>(all.data() + head * spec.head_dim, spec.head_dim);
    if (!spec.qk_norm || scales.empty() || scales[0] != d) scales.push_back(d);
  }
  return scales;
}

std::vector<Vector> FittedScales(const LayerMoments& moments, const AttentionSpec& spec,
                                 FoldScales source) {
  // Plain rotation files cannot centre keys, so the scales are made for keys that are not centred.
  const KeyRecipe keys{.kind = KeyTransformKind::kPairScaled,
                       .power_of_two = source == FoldScales::kPowerOfTwo};
  const RopePairs pairs{spec.rope.rotary_dim, spec.rope.layout == RopeLayout::kInterleaved};
  if (spec.qk_norm) return {SharedPairScales(moments, keys, pairs)};
  std::vector<Vector> scales;
  for (int64_t head = 0; head < spec.num_kv_heads; ++head)
    scales.push_back(HeadPairScales(moments, head, keys, pairs));
  return scales;
}

std::vector<KeyTransform> Balanced(const LayerMoments& moments, const Checkpoint& checkpoint,
                                   const AttentionSpec& spec, const FoldOptions& options) {
  const Matrix projection = ReadWeight(checkpoint.tensor(spec.o.weight), spec.o.weight);
  std::vector<KeyTransform> values;
  for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
    values.push_back(FitValueTransform(moments, head, OutputMetric(projection, moments, head),
                                       options.value_epsilon, Composition::kPlain));
  }
  return values;
}

// Returns R_V of the choice. Without a choice, returns OSCAR's own: one per KV head if available,
// else one for all of them.
CacheSide RotationOfValues(const Artifact& artifact, int layer_id, const std::string& choice) {
  if (!choice.empty()) return artifact.ReadChoice(layer_id, choice).v;
  StoredLayer layer = artifact.ReadLayer(layer_id);
  return layer.v.num_rotations > 0 ? layer.v : layer.v_shared;
}

std::vector<KeyTransform> Rotated(const Artifact& artifact, const LayerSpec& layer,
                                  const std::string& choice) {
  const AttentionSpec& a = layer.attention;
  const CacheSide side = RotationOfValues(artifact, layer.layer_id, choice);
  if (side.dim != a.v_head_dim || (side.num_rotations != 1 && side.num_rotations != a.num_kv_heads))
    throw InputError(
        fmt::format("layer {}: the artifact rotates values of {} heads of dimension {}, but the "
                    "model has {} of dimension {}",
                    layer.layer_id, side.num_rotations, side.dim, a.num_kv_heads, a.v_head_dim));
  if (!side.mean.empty() || !side.pair_scale.empty() || !side.query_rotation.empty()) {
    throw InputError(
        fmt::format("layer {}: the choice for values needs means, scales or a query matrix, but "
                    "weights can hold only its rotation",
                    layer.layer_id));
  }
  std::vector<KeyTransform> values;
  for (int64_t head = 0; head < a.num_kv_heads; ++head) {
    const int64_t stored = side.num_rotations == 1 ? 0 : head;
    KeyTransform value;
    value.x = Eigen::Map<const WeightMatrix>(side.rotation.data() + stored * side.dim * side.dim,
                                             side.dim, side.dim);
    // x is rounded to float32. So its transpose is its inverse only to 1e-7, but the inverse
    // computed here is exact to 1e-16.
    value.inverse = value.x.inverse();
    values.push_back(std::move(value));
  }
  return values;
}

bool IsPowerOfTwo(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5;
}

bool IsExact(const LayerFold& fold) {
  return fold.values.empty() && std::ranges::all_of(fold.key_scales, [](const Vector& scales) {
           return std::all_of(scales.begin(), scales.end(), IsPowerOfTwo);
         });
}

Json LayerRecord(int layer_id, const LayerFold& fold) {
  Json scales = Json::array();
  for (const Vector& d : fold.key_scales) scales.push_back(std::vector<double>(d.begin(), d.end()));
  double condition = 1;
  for (const KeyTransform& value : fold.values) condition = std::max(condition, value.condition);
  return {{"layer_id", layer_id},
          {"key_scales", scales},
          {"values_condition", fold.values.empty() ? Json() : Json(condition)}};
}

void CheckFoldable(const ModelSpec& spec, const FoldOptions& options) {
  const bool rotation = options.values == FoldValues::kRotation;
  const std::string why =
      rotation ? WhyNotFoldable(spec, WhyValuesNotFoldable) : WhyNotFoldable(spec);
  if (why.empty()) return;
  throw InputError(
      fmt::format("{}, so {} into its weights; use the artifact unchanged", why,
                  rotation ? "no rotation of values can be absorbed" : "nothing can be folded"));
}

}  // namespace

FoldPlan PlanFold(const Artifact& artifact, const Checkpoint& checkpoint, const ModelSpec& spec,
                  const FoldOptions& options) {
  CheckFoldable(spec, options);
  FoldPlan plan;
  plan.choice = FoldedChoice(artifact, options);
  const std::optional<FoldScales> source = Resolved(artifact, plan.choice, options);
  // The moments are read only if needed. An imported artifact has none, but a rotation needs none.
  std::optional<MomentsReader> reader;
  const auto moments = [&](const LayerSpec& layer) {
    if (!reader) reader.emplace(artifact.directory() / kMomentsFile);
    LayerMoments read = reader->Read(layer.layer_id);
    CheckGeometry(read, layer.attention);
    return read;
  };
  Json layers = Json::array();
  for (const LayerSpec& layer : spec.layers) {
    LayerFold fold;
    if (source == FoldScales::kChosen) {
      fold.key_scales =
          ChosenScales(artifact.ReadChoice(layer.layer_id, plan.choice), layer.attention);
    } else if (source) {
      fold.key_scales = FittedScales(moments(layer), layer.attention, *source);
    }
    if (!fold.key_scales.empty()) {
      if (const std::string why = WhyNotFoldable(layer.attention); !why.empty())
        throw InputError(
            fmt::format("layer {}: {}, so its keys cannot be scaled", layer.layer_id, why));
    }
    if (options.values == FoldValues::kBalanced)
      fold.values = Balanced(moments(layer), checkpoint, layer.attention, options);
    if (options.values == FoldValues::kRotation)
      fold.values = Rotated(artifact, layer, plan.choice);
    layers.push_back(LayerRecord(layer.layer_id, fold));
    plan.exact = plan.exact && IsExact(fold);
    plan.layers.push_back(std::move(fold));
  }
  plan.record = {{"format", "oscar-fold"},
                 {"format_version", 1},
                 {"artifact", artifact.identity()},
                 {"scales", source ? ScalesName(*source) : "none"},
                 {"layers", layers}};
  if (options.values == FoldValues::kRotation) {
    plan.record["values"] = "rotation";
    plan.record["choice"] = plan.choice.empty() ? Json() : Json(plan.choice);
  }
  return plan;
}

}  // namespace oscar
