// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
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
#include "export/artifact/foreign_rotations.h"
#include "linalg/error.h"

namespace oscar {
namespace {

FloatTensorPtr Tensor(std::vector<int64_t> shape, const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  return std::make_shared<const FloatTensor>(
      FloatTensor{std::move(shape), {values.begin(), values.end()}});
}

std::vector<int64_t> MatrixShape(const CacheSide& side) {
  if (side.num_rotations == 1) return {side.dim, side.dim};
  return {side.num_rotations, side.dim, side.dim};
}

// A ratio as it was given: the artifact stores float32.
double Decimal(double ratio) { return std::round(ratio * 1e6) / 1e6; }

SglangChoiceLayer Layer(int layer_id, int64_t num_kv_heads, const StoredChoice& choice) {
  return {.layer_id = layer_id,
          .k = Tensor(MatrixShape(choice.k), choice.k.rotation),
          .q = Tensor(MatrixShape(choice.k), choice.k.query_rotation),
          .k_mean = Tensor({num_kv_heads, choice.k.dim}, choice.k.mean),
          .v = Tensor(MatrixShape(choice.v), choice.v.rotation),
          .num_kv_heads = num_kv_heads,
          .k_clip = Decimal(choice.k_codes.clip.at(0)),
          .v_clip = Decimal(choice.v_codes.clip.at(0))};
}

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

// A choice is made under its consumer's rules; what breaks them was not written by us.
void CheckCarried(const Artifact& artifact, const ConsumerRules& rules, std::string_view choice) {
  ConsumerRules carried = rules;
  if (HoldsLatents(artifact)) carried.clip = ClipScope::kHead;  // checked layer by layer
  const std::vector<std::string> lost = DemandsOf(artifact, choice).NotCarriedBy(carried);
  if (lost.empty()) return;
  throw InputError(fmt::format("{}: choice \"{}\" has what the files of {} cannot carry: {}",
                               artifact.directory().string(), choice, rules.name,
                               fmt::join(lost, "; ")));
}

}  // namespace

SglangChoice ChosenForRuntime(const Artifact& artifact, Consumer consumer, bool folded) {
  const Json& manifest = artifact.manifest();
  const std::string what = (artifact.directory() / kManifestFile).string();
  const ConsumerRules& rules = RulesOf(consumer);
  const std::string name = artifact.ChoiceFor(rules.name, folded);
  CheckCarried(artifact, rules, name);
  SglangChoice out;
  for (const Json& geometry : JsonMember(manifest, "geometry", what)) {
    const auto id = JsonInt32(geometry, "layer_id", what);
    const StoredChoice choice = artifact.ReadChoice(id, name);
    out.folded = out.folded || !choice.k.pair_scale.empty();
    out.layers.push_back(Layer(id, JsonInt(geometry, "num_kv_heads", what), choice));
    const int64_t group = choice.k_codes.quant_group_size;
    out.serving.quant_group_size = group > 0 ? group : choice.k.dim;
    // Of all heads, as was checked, and of all layers where the runtime has one ratio.
    out.serving.k_clip_ratio = out.layers.back().k_clip;
    out.serving.v_clip_ratio = out.layers.back().v_clip;
  }
  const Json& layers = JsonMember(artifact.Choice(name), "layers", what);
  const Json& serving = JsonMember(manifest, "serving", what);
  out.key_transform = KeyTransformOf(layers, what);
  out.serving.sink_tokens = JsonInt(serving, "sink_tokens", what);
  out.serving.recent_tokens = JsonInt(serving, "recent_tokens", what);
  out.calibration = {{"artifact_sha256", artifact.identity()},
                     {"model", JsonMember(manifest, "model", what)},
                     {"data", JsonMember(manifest, "data", what)},
                     {"choice", name},
                     {"folded_checkpoint", out.folded},
                     {"recipes", layers},
                     {"program", JsonMember(manifest, "program", what)}};
  return out;
}

SglangChoice OwnRotations(const Artifact& artifact) {
  const SglangExport own = ToSglang(artifact);
  SglangChoice choice;
  choice.calibration = own.calibration;
  choice.serving = own.serving;
  for (const Json& geometry : artifact.manifest().at("geometry")) {
    const SglangLayer& layer = own.layers.at(choice.layers.size());
    choice.layers.push_back({.layer_id = layer.layer_id,
                             .k = layer.k.shared,
                             .q = {},
                             .k_mean = {},
                             .v = layer.v.shared,
                             .num_kv_heads = geometry.at("num_kv_heads"),
                             .k_clip = own.serving.k_clip_ratio,
                             .v_clip = own.serving.v_clip_ratio});
  }
  return choice;
}

bool HoldsLatents(const Artifact& artifact) {
  const Json& manifest = artifact.manifest();
  if (!manifest.contains("calibration")) return false;  // imported
  const size_t latents = manifest["calibration"].value("latent_layers", Json::array()).size();
  const size_t layers = artifact.layer_ids().size();
  if (latents > 0 && latents < layers) {
    throw InputError(fmt::format(
        "{}: {} of its {} layers have latent attention (MLA): no runtime loads files of both kinds",
        artifact.directory().string(), latents, layers));
  }
  return latents > 0;
}

MlaFolder LatentsForSglang(const Artifact& artifact, bool chosen) {
  const Json& manifest = artifact.manifest();
  const std::string what = (artifact.directory() / kManifestFile).string();
  const Json& serving = JsonMember(manifest, "serving", what);
  MlaFolder out;
  out.calibration = {{"model", JsonMember(manifest, "model", what)}};
  out.serving.sink_tokens = JsonInt(serving, "sink_tokens", what);
  out.serving.recent_tokens = JsonInt(serving, "recent_tokens", what);
  int64_t group = JsonInt(serving, "quant_group_size", 0, what);
  const ConsumerRules& rules = RulesOf(Consumer::kSglangOct);
  const std::string name = chosen ? artifact.ChoiceFor(rules.name, /*folded=*/false) : "";
  if (chosen) CheckCarried(artifact, rules, name);
  for (const int id : artifact.layer_ids()) {
    const StoredLayer layer = artifact.ReadLayer(id);
    const int64_t rank = layer.k.dim;
    if (!chosen) {
      out.layers.push_back({.layer_id = id, .rotation = Tensor({rank, rank}, layer.k.rotation)});
    } else {
      const StoredChoice choice = artifact.ReadChoice(id, name);
      if (choice.k_codes.clip.at(0) != 1) {
        throw InputError(fmt::format(
            "{}: choice \"{}\" has a clip ratio of {:g} in layer {}, and the pool of latents of {} "
            "clips nothing",
            artifact.directory().string(), name, Decimal(choice.k_codes.clip.at(0)), id,
            rules.name));
      }
      group = choice.k_codes.quant_group_size;
      out.layers.push_back({.layer_id = id,
                            .rotation = Tensor({rank, rank}, choice.k.rotation),
                            .q_rotation = Tensor({rank, rank}, choice.k.query_rotation),
                            .mean = Tensor({rank}, choice.k.mean)});
    }
    out.serving.quant_group_size = group > 0 ? group : rank;
  }
  return out;
}

}  // namespace oscar
