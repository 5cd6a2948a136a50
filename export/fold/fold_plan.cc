// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/fold/fold_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calib/fit/transform_fit.h"
#include "calib/moments/moments_file.h"
#include "capture/model/use_limits.h"
#include "export/artifact/artifact_format.h"
#include "export/fold/stored_weight.h"
#include "linalg/error.h"

namespace oscar {
namespace {

void CheckGeometry(const LayerMoments& moments, const AttentionSpec& spec) {
  const auto shape = [](const auto& g) {
    return fmt::format("{} query heads, {} KV heads, dimensions {} and {}", g.num_q_heads,
                       g.num_kv_heads, g.head_dim, g.v_head_dim);
  };
  if (shape(moments) == shape(spec)) return;
  throw InputError(fmt::format("layer {}: the artifact was fitted to {}, but the model has {}",
                               moments.layer_id, shape(moments), shape(spec)));
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

// The choice whose scales are folded: that of `runtime`, or the first that folds, the headline's
// before others; empty: none does.
std::string FoldedChoice(const Artifact& artifact, std::string_view runtime) {
  if (!artifact.has_choices()) return {};
  if (!runtime.empty()) return artifact.ChoiceFor(runtime, /*folded=*/true);
  if (artifact.Choice().value("fold_checkpoint", false)) return std::string(kHeadlineChoice);
  const Json& serving = JsonMember(artifact.manifest(), "serving", kManifestFile);
  for (const Json& row : JsonMember(serving, "runtimes", kManifestFile)) {
    if (row.value("fold_checkpoint", false)) return JsonString(row, "choice", kManifestFile);
  }
  return {};
}

FoldScales Resolved(const Artifact& artifact, const std::string& choice, FoldScales scales) {
  if (scales != FoldScales::kAuto && scales != FoldScales::kChosen) return scales;
  if (!choice.empty()) return FoldScales::kChosen;
  if (scales == FoldScales::kAuto) return FoldScales::kPowerOfTwo;
  throw InputError(
      fmt::format("{}: no key scales were chosen for it; scales can be made from its moments "
                  "(exact or power_of_two)",
                  artifact.directory().string()));
}

// One set where weights are shared by all heads: the choice then was, too.
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
  // Plain rotation files do not centre keys, so it is the uncentred energy that is quantized.
  const KeyRecipe keys{.kind = KeyTransformKind::kPairScaled,
                       .power_of_two = source == FoldScales::kPowerOfTwo};
  const RopePairs pairs{spec.rope.rotary_dim, spec.rope.layout == RopeLayout::kInterleaved};
  if (spec.qk_norm) return {SharedPairScales(moments, keys, pairs)};
  std::vector<Vector> scales;
  for (int64_t head = 0; head < spec.num_kv_heads; ++head)
    scales.push_back(HeadPairScales(moments, head, keys, pairs));
  return scales;
}

std::vector<KeyTransform> Values(const LayerMoments& moments, const Checkpoint& checkpoint,
                                 const AttentionSpec& spec, const FoldOptions& options) {
  const Matrix projection = ReadWeight(checkpoint.tensor(spec.o.weight), spec.o.weight);
  std::vector<KeyTransform> values;
  for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
    values.push_back(FitValueTransform(moments, head, OutputMetric(projection, moments, head),
                                       options.value_epsilon, Composition::kPlain));
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

Json LayerRecord(const LayerMoments& moments, const LayerFold& fold) {
  Json scales = Json::array();
  for (const Vector& d : fold.key_scales) scales.push_back(std::vector<double>(d.begin(), d.end()));
  double condition = 1;
  for (const KeyTransform& value : fold.values) condition = std::max(condition, value.condition);
  return {{"layer_id", moments.layer_id},
          {"key_scales", scales},
          {"values_condition", fold.values.empty() ? Json() : Json(condition)}};
}

void CheckFoldable(const ModelSpec& spec) {
  if (const std::string why = WhyNotFoldable(spec); !why.empty()) {
    throw InputError(why +
                     ", so nothing can be folded into its weights: use the artifact as it is");
  }
}

}  // namespace

FoldPlan PlanFold(const Artifact& artifact, const Checkpoint& checkpoint, const ModelSpec& spec,
                  const FoldOptions& options) {
  if (!checkpoint.quantization().plain()) {
    throw InputError(fmt::format(
        "{}: weights are quantized ({}), and folding changes weights: fold the model it was made "
        "from, and quantize the result",
        checkpoint.directory().string(), checkpoint.quantization().method()));
  }
  CheckFoldable(spec);
  const MomentsReader reader(artifact.directory() / kMomentsFile);
  const std::string choice = FoldedChoice(artifact, options.runtime);
  const FoldScales source = Resolved(artifact, choice, options.scales);
  FoldPlan plan;
  Json layers = Json::array();
  for (const LayerSpec& layer : spec.layers) {
    const LayerMoments moments = reader.Read(layer.layer_id);
    CheckGeometry(moments, layer.attention);
    LayerFold fold;
    fold.key_scales =
        source == FoldScales::kChosen
            ? ChosenScales(artifact.ReadChoice(layer.layer_id, choice), layer.attention)
            : FittedScales(moments, layer.attention, source);
    if (options.values) fold.values = Values(moments, checkpoint, layer.attention, options);
    layers.push_back(LayerRecord(moments, fold));
    plan.exact = plan.exact && IsExact(fold);
    plan.layers.push_back(std::move(fold));
  }
  plan.record = {{"format", "oscar-fold"},
                 {"format_version", 1},
                 {"artifact", artifact.identity()},
                 {"scales", ScalesName(source)},
                 {"layers", layers}};
  return plan;
}

}  // namespace oscar
