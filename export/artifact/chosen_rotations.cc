// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/chosen_rotations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/artifact/artifact_format.h"
#include "export/artifact/choice_demands.h"
#include "export/artifact/foreign_rotations.h"
#include "linalg/base/error.h"

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

// Undoes the float32 rounding of a stored ratio.
double Decimal(double ratio) { return std::round(ratio * 1e6) / 1e6; }

// `heads_known` is false for imported files in which one head represents all. If `one_per_head`, a
// layer with one head gets the shape [1, d, d], like the per-head matrices of other layers.
SglangChoiceLayer Layer(int layer_id, int64_t num_kv_heads, bool heads_known, bool one_per_head,
                        const StoredChoice& choice) {
  const auto matrix_shape = [&](const CacheSide& side) {
    std::vector<int64_t> shape = MatrixShape(side);
    if (one_per_head && shape.size() == 2) shape.insert(shape.begin(), 1);
    return shape;
  };
  const auto of_heads = [&](const CacheSide& side) {
    std::vector<int64_t> shape = {num_kv_heads, side.dim};
    if (!heads_known) shape.erase(shape.begin());
    return shape;
  };
  const auto eigenvalues = [&](const CacheSide& side, const std::vector<float>& values) {
    std::vector<int64_t> shape = matrix_shape(side);
    shape.pop_back();
    return Tensor(shape, {values.begin(), values.end()});
  };
  return {.layer_id = layer_id,
          .k = Tensor(matrix_shape(choice.k), choice.k.rotation),
          .q = Tensor(matrix_shape(choice.k), choice.k.query_rotation),
          .k_mean = Tensor(of_heads(choice.k), choice.k.mean),
          .v = Tensor(matrix_shape(choice.v), choice.v.rotation),
          .num_kv_heads = heads_known ? num_kv_heads : 0,
          .k_clip = Decimal(choice.k_codes.clip.at(0)),
          .v_clip = Decimal(choice.v_codes.clip.at(0)),
          .k_pair_scale = Tensor(of_heads(choice.k), choice.k.pair_scale),
          .o = Tensor(matrix_shape(choice.v), choice.v.query_rotation),
          .k_eigenvalues = eigenvalues(choice.k, choice.k_eigenvalues),
          .v_eigenvalues = eigenvalues(choice.v, choice.v_eigenvalues)};
}

// Imported files may hold only one side, which only plain safetensors files can represent.
void CheckSides(const Artifact& artifact, const SglangChoice& choice, Consumer consumer) {
  const auto refuse = [&](std::string_view what) {
    throw InputError(fmt::format("{}: was imported from {} files, which {}",
                                 artifact.directory().string(),
                                 artifact.manifest().at("imported").value("from", "?"), what));
  };
  for (const SglangChoiceLayer& layer : choice.layers) {
    if (!layer.k && !layer.v)
      refuse(
          fmt::format("contain no rotations for layer {}; oscar-export --list shows which targets "
                      "can hold the rest",
                      layer.layer_id));
    if (consumer == Consumer::kAny) continue;
    if (!layer.k || !layer.v)
      refuse(
          fmt::format("contain no rotations for {} (layer {}); import both sides as KEYS:VALUES, "
                      "or write --to safetensors",
                      layer.k ? "values" : "keys", layer.layer_id));
    if (layer.o && consumer != Consumer::kSglangOct)
      refuse(
          fmt::format("have a separate matrix that undoes the value rotation (layer {}); use --to "
                      "sglang-oct, which can hold it",
                      layer.layer_id));
  }
}

// Returns the transform with which every layer's key recipe begins, or "mixed" if they differ.
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

// Checks a stored choice against the rules of its runtime. Calibration follows the rules, so only a
// choice from another program can break them.
void CheckCarried(const Artifact& artifact, const ConsumerRules& rules, std::string_view choice) {
  ConsumerRules carried = rules;
  if (HoldsLatents(artifact)) carried.clip = ClipScope::kHead;  // checked layer by layer
  const std::vector<std::string> lost = DemandsOf(artifact, choice).NotCarriedBy(carried);
  if (lost.empty()) return;
  throw InputError(fmt::format("{}: choice \"{}\" needs what the files for {} cannot hold: {}",
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
    const int64_t heads = JsonInt(geometry, "num_kv_heads", what);
    const bool known = artifact.kv_heads_known();
    out.layers.push_back(
        Layer(id, heads, known, artifact.imported() && known && heads == 1, choice));
    const int64_t group = choice.k_codes.quant_group_size;
    out.serving.quant_group_size = group > 0 ? group : std::max(choice.k.dim, choice.v.dim);
    // CheckCarried has made sure that all layers and heads agree if the runtime takes only one
    // ratio.
    out.serving.k_clip_ratio = out.layers.back().k_clip;
    out.serving.v_clip_ratio = out.layers.back().v_clip;
  }
  if (artifact.imported()) CheckSides(artifact, out, consumer);
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
  if (!manifest.contains("calibration")) return false;  // imported by an older version
  const size_t latents = manifest["calibration"].value("latent_layers", Json::array()).size();
  const size_t layers = artifact.layer_ids().size();
  if (latents > 0 && latents < layers) {
    throw InputError(
        fmt::format("{}: only {} of its {} layers have latent attention (MLA), and no runtime "
                    "loads files of both kinds",
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
    int64_t rank = 0;
    if (!chosen) {
      const StoredLayer layer = artifact.ReadLayer(id);
      rank = layer.k.dim;
      out.layers.push_back({.layer_id = id, .rotation = Tensor({rank, rank}, layer.k.rotation)});
    } else {
      const StoredChoice choice = artifact.ReadChoice(id, name);
      rank = choice.k.dim;
      if (choice.k_codes.clip.at(0) != 1) {
        throw InputError(
            fmt::format("{}: choice \"{}\" has a clip ratio of {:g} in layer {}, but the latent "
                        "cache of {} does not clip",
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
