// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See chosen_rotations.h.
#include "export/artifact/chosen_rotations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/artifact/artifact_format.h"
#include "export/artifact/choice_demands.h"
#include "linalg/error.h"

namespace oscar {
namespace {

FloatTensorPtr Tensor(std::vector<int64_t> shape, const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  return std::make_shared<const FloatTensor>(
      FloatTensor{std::move(shape), {values.begin(), values.end()}});
}

std::vector<int64_t> MatrixShape(const AutoSide& side) {
  if (side.num_rotations == 1) return {side.dim, side.dim};
  return {side.num_rotations, side.dim, side.dim};
}

SglangChoiceLayer Layer(int layer_id, int64_t num_kv_heads, const StoredChoice& choice) {
  return {.layer_id = layer_id,
          .k = Tensor(MatrixShape(choice.k), choice.k.rotation),
          .q = Tensor(MatrixShape(choice.k), choice.k.query_rotation),
          .k_mean = Tensor({num_kv_heads, choice.k.dim}, choice.k.mean),
          .v = Tensor(MatrixShape(choice.v), choice.v.rotation),
          .num_kv_heads = num_kv_heads};
}

// A ratio as it was given: the artifact stores float32.
double Decimal(double ratio) { return std::round(ratio * 1e6) / 1e6; }

// What every layer's recipe of keys begins with, or "mixed".
std::string KeyTransformOf(const Json& layers, std::string_view what) {
  std::string common;
  for (const Json& layer : layers) {
    const std::string recipe = JsonString(layer, "keys", what);
    const std::string transform = recipe.substr(0, recipe.find(' '));
    if (!common.empty() && common != transform) return "mixed";
    common = transform;
  }
  return common;
}

void CheckCarried(const Artifact& artifact, Consumer consumer, std::string_view made_for) {
  const ChoiceDemands demands = DemandsOf(artifact);
  const ConsumerRules& rules = RulesOf(consumer);
  const std::vector<std::string> lost = demands.NotCarriedBy(rules);
  if (lost.empty()) return;
  std::string others;
  if (consumer != Consumer::kSglangOct &&
      demands.NotCarriedBy(RulesOf(Consumer::kSglangOct)).empty())
    others = ", or write what the October tree loads with --to sglang-oct";
  throw InputError(fmt::format(
      "{}: its automatic choice (made with --for {}) has what the files of {} cannot carry: {}; "
      "calibrate with --for {}{}, or write OSCAR's own rotations with --to sglang --rotations "
      "oscar",
      artifact.directory().string(), made_for, rules.name, fmt::join(lost, "; "), rules.name,
      others));
}

}  // namespace

SglangChoice ChosenForSglang(const Artifact& artifact, Consumer consumer) {
  const Json& manifest = artifact.manifest();
  const std::string what = (artifact.directory() / kManifestFile).string();
  if (!artifact.has_choices()) {
    throw InputError(
        fmt::format("{}: holds no automatic choice; make it with oscar-calibrate, or write OSCAR's "
                    "own rotations with --to sglang, which both trees load",
                    artifact.directory().string()));
  }
  const std::string made_for = JsonString(JsonMember(manifest, "auto", what), "for", what);
  CheckCarried(artifact, consumer, made_for);
  SglangChoice out;
  for (const Json& geometry : JsonMember(manifest, "geometry", what)) {
    const auto id = static_cast<int>(JsonInt(geometry, "layer_id", what));
    const StoredChoice choice = artifact.ReadLayer(id).automatic.value();
    out.folded = out.folded || !choice.k.pair_scale.empty();
    out.layers.push_back(Layer(id, JsonInt(geometry, "num_kv_heads", what), choice));
    out.serving.quant_group_size =
        choice.quant_group_size > 0 ? choice.quant_group_size : choice.k.dim;
    out.serving.k_clip_ratio =
        Decimal(choice.k_clip.at(0));  // of all layers and heads, as was checked
    out.serving.v_clip_ratio = Decimal(choice.v_clip.at(0));
  }
  const Json& layers = JsonMember(JsonMember(manifest, "auto", what), "layers", what);
  const Json& serving = JsonMember(manifest, "serving", what);
  out.key_transform = KeyTransformOf(layers, what);
  out.serving.sink_tokens = JsonInt(serving, "sink_tokens", what);
  out.serving.recent_tokens = JsonInt(serving, "recent_tokens", what);
  out.calibration = {{"artifact_sha256", artifact.identity()},
                     {"model", JsonMember(manifest, "model", what)},
                     {"data", JsonMember(manifest, "data", what)},
                     {"folded_checkpoint", out.folded},
                     {"recipes", layers},
                     {"program", JsonMember(manifest, "program", what)}};
  return out;
}

}  // namespace oscar
