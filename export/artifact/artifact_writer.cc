// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See artifact_writer.h.
#include "export/artifact/artifact_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "calib/auto_plan.h"
#include "calib/auto_points.h"
#include "calib/fit.h"  // SameKeysAndValues
#include "calib/moments_file.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/model_card.h"
#include "export/artifact/report.h"
#include "linalg/check.h"

namespace oscar {
namespace {

using Declarations = std::vector<SafetensorsWriter::Declaration>;

// The tensors of one layer, in file order; `visit(name, shape, values)`.
template <typename Visit>
void ForEachTensor(const LayerResult& layer, Visit visit) {
  const LayerMoments& moments = layer.moments;
  const auto side = [&](char name, bool shared, const SideResult& s) {
    if (s.num_rotations == 0) return;
    const auto tensor = [&](const char* what, std::vector<int64_t> shape,
                            const std::vector<double>& values) {
      if (!values.empty())
        visit(RotationTensorName(moments.layer_id, name, shared, what), std::move(shape), values);
    };
    tensor("rotation", {s.num_rotations, s.dim, s.dim}, s.rotation);
    tensor("eigenvalues", {s.num_rotations, s.dim}, s.eigenvalues);
    tensor("clip_ratio", {1}, {s.clip_ratio});
    tensor("clip_threshold", {static_cast<int64_t>(s.clip_threshold.size())}, s.clip_threshold);
  };
  side('k', false, layer.k);
  side('k', true, layer.k_shared);
  if (!moments.key_sum.empty()) {
    std::vector<double> mean;
    for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
      const Vector head_mean = moments.KeyMean(head);
      mean.insert(mean.end(), head_mean.data(), head_mean.data() + head_mean.size());
    }
    visit(RotationTensorName(moments.layer_id, 'k', false, "mean"),
          {moments.num_kv_heads, moments.head_dim}, mean);
  }
  side('v', false, layer.v);
  side('v', true, layer.v_shared);
  if (!layer.automatic.made) return;
  const auto automatic = [&](char name, const AutoSide& s, const std::vector<double>& clip) {
    const auto tensor = [&](const char* what, std::vector<int64_t> shape,
                            const std::vector<double>& values) {
      if (!values.empty())
        visit(AutoTensorName(moments.layer_id, name, what), std::move(shape), values);
    };
    const std::vector<int64_t> matrices = {s.num_rotations, s.dim, s.dim};
    tensor("rotation", matrices, s.rotation);
    tensor("query_rotation", matrices, s.query_rotation);
    tensor("pair_scale", {moments.num_kv_heads, s.dim}, s.pair_scale);
    tensor("mean", {moments.num_kv_heads, s.dim}, s.mean);
    tensor("clip_ratio", {std::ssize(clip)}, clip);
  };
  automatic('k', layer.automatic.k, layer.automatic.k_option().clip);
  automatic('v', layer.automatic.v, layer.automatic.v_option().clip);
}

// Sum over layers of one side's clip curves, and the ratio where it is least: for runtimes that
// take one ratio for all layers.
struct ClipOverLayers {
  std::vector<double> candidates, error;
  double fixed = 0;

  void Add(const std::vector<double>& ratios, const SideResult& side) {
    fixed = side.clip_ratio;
    if (side.clip_error.empty()) return;
    candidates = ratios;
    error.resize(ratios.size(), 0.0);
    for (size_t i = 0; i < ratios.size(); ++i) error[i] += side.clip_error[i];
  }
  double Best() const {
    size_t best = 0;
    for (size_t i = 1; i < error.size(); ++i) {
      if (error[i] <= error[best]) best = i;
    }
    return error.empty() ? fixed : candidates[best];
  }
};

Json DigestsOf(const std::filesystem::path& directory, const std::vector<const char*>& files) {
  Json digests = Json::object();
  for (const char* file : files) {
    digests[file] = DigestToJson(DigestFile(directory / file));
  }
  return digests;
}

Json Geometry(const LayerMoments& moments) {
  return {{"layer_id", moments.layer_id},         {"num_q_heads", moments.num_q_heads},
          {"num_kv_heads", moments.num_kv_heads}, {"head_dim", moments.head_dim},
          {"v_head_dim", moments.v_head_dim},     {"tokens", moments.tokens}};
}

// One number, or one for each KV head.
Json BitsOf(const SideOption& option) {
  const std::vector<int> bits = option.Bits();
  if (bits.size() == 1) return bits[0];
  return bits;
}

// Clip ratios were declared as the search left them; an option that the plan has taken instead may
// have one for each head.
void RedeclareRatios(int layer_id, const AutoChoice& choice, Declarations& declarations) {
  for (const char side : {'k', 'v'}) {
    const std::string name = AutoTensorName(layer_id, side, "clip_ratio");
    const auto declared =
        std::ranges::find(declarations, name, &SafetensorsWriter::Declaration::name);
    if (declared == declarations.end()) continue;  // a side that is stored as the other
    declared->shape = {std::ssize((side == 'k' ? choice.k_option() : choice.v_option()).clip)};
  }
}

// What the choices of all layers come to, for a server and for people.
Json ServingChoice(const AutoOptions& options, const AutoPlan& plan,
                   const std::vector<AutoChoice>& choices) {
  Json windows = Json::array();
  for (size_t i = 0; i < plan.window_scores.size(); ++i) {
    const WindowPrice& window = choices.front().windows[i];
    int64_t rows = window.rows;
    for (const AutoChoice& choice : choices) rows = std::min(rows, choice.windows[i].rows);
    windows.push_back({{"sink_tokens", window.windows.sink},
                       {"recent_tokens", window.windows.recent},
                       {"bits_per_element", WindowBits(window.windows)},
                       {"rows_beyond", rows},
                       {"kl", plan.window_scores[i]}});
  }
  const auto any = [&](auto property) { return std::ranges::any_of(choices, property); };
  Json serving = {
      {"for", RulesOf(options.consumer).name},
      {"bits", options.bits},
      {"bits_spent", plan.bits},
      {"bits_stored", plan.stored_bits},
      {"sink_tokens", plan.windows.sink},
      {"recent_tokens", plan.windows.recent},
      {"windows", windows},
      {"windows_priced_at_tokens", kPriceTokens},
      {"fold_checkpoint", any([](const AutoChoice& c) {
         return c.keys.kind == KeyTransformKind::kPairScaled && c.keys.folded;
       })},
      {"query_rotation", any([](const AutoChoice& c) {
         return c.keys.kind == KeyTransformKind::kBalanced || !c.keys.folded;
       })},
      {"key_mean", any([](const AutoChoice& c) { return c.keys.centred; })},
      {"unstable_layers",
       std::ranges::count_if(choices, [](const AutoChoice& c) { return c.stability.unstable; })},
      {"hadamard_layers", std::ranges::count_if(choices, [](const AutoChoice& c) {
         return !c.k_fallback.empty() || !c.v_fallback.empty();
       })}};
  const ClipScope scope = RulesOf(options.consumer).clip;
  if (scope == ClipScope::kSide || scope == ClipScope::kModel) {
    serving["k_clip_ratio"] = choices.front().k_option().clip.at(0);
    serving["v_clip_ratio"] = choices.front().v_option().clip.at(0);
  }
  return serving;
}

// The arm "auto" of a layer's report, measured where the search left the choice, is to be of where
// the plan has put it.
void MoveAutoArm(const AutoOptions& options, const AutoChoice& searched, const AutoChoice& planned,
                 const std::vector<AutoArm>& points, Json& layer_report) {
  const ChoicePoint to = PointOf(options, planned);
  if (to == PointOf(options, searched) || !layer_report.at("arms").contains("auto")) return;
  const auto found = std::ranges::find(points, to, &AutoArm::point);
  OSCAR_CHECK(found != points.end());
  layer_report["arms"]["auto"] = ArmReport(found->arm);
}

}  // namespace

Json WriteArtifact(const std::filesystem::path& path, const ArtifactInfo& info,
                   const LayerSource& layers) {
  Declarations declarations;
  std::vector<Json> layer_reports;
  Json geometry = Json::array();
  ClipOverLayers k, v, k_shared, v_shared;
  std::vector<AutoChoice> choices;  // without their matrices
  std::vector<std::vector<AutoArm>> points;
  std::vector<LayerElements> elements;
  for (size_t i = 0; i < layers.count; ++i) {
    const LayerResult layer = layers.load(i);
    ForEachTensor(layer,
                  [&](std::string name, std::vector<int64_t> shape, const std::vector<double>&) {
                    declarations.push_back({std::move(name), DType::kF32, std::move(shape)});
                  });
    layer_reports.push_back(LayerReport(layer));
    geometry.push_back(Geometry(layer.moments));
    if (layer.automatic.made) {
      choices.push_back(layer.automatic);
      choices.back().k = choices.back().v = {};
      points.push_back(layer.auto_arms);
      const LayerMoments& m = layer.moments;
      const int64_t group = layer.automatic.quant_group_size;
      elements.push_back(layer.automatic.latent()
                             ? LatentElementsOf(m.head_dim, layer.automatic.position_dim, group)
                             : ElementsOf(m.num_kv_heads, m.head_dim, m.v_head_dim, group));
    }
    k.Add(layer.clip_candidates, layer.k);
    v.Add(layer.clip_candidates, layer.v);
    k_shared.Add(layer.clip_candidates, layer.k_shared);
    v_shared.Add(layer.clip_candidates, layer.v_shared);
    if (SameKeysAndValues(layer.moments)) {  // stored once, clipped once
      k.Add(layer.clip_candidates, layer.v);
      v.Add(layer.clip_candidates, layer.k);
      k_shared.Add(layer.clip_candidates, layer.v_shared);
      v_shared.Add(layer.clip_candidates, layer.k_shared);
    }
  }

  Json automatic, serving_choice;
  if (!choices.empty()) {
    OSCAR_CHECK_EQ(choices.size(), layers.count);
    const std::vector<AutoChoice> searched = choices;
    const AutoPlan plan = PlanLayers(info.automatic, elements, choices);
    serving_choice = ServingChoice(info.automatic, plan, choices);
    automatic = {{"for", serving_choice.at("for")},
                 {"fold_checkpoint", serving_choice.at("fold_checkpoint")},
                 {"layers", Json::array()}};
    for (size_t i = 0; i < choices.size(); ++i) {
      layer_reports[i]["auto"] = ChoiceToJson(choices[i]);
      RedeclareRatios(geometry[i].at("layer_id").get<int>(), choices[i], declarations);
      MoveAutoArm(info.automatic, searched[i], choices[i], points[i], layer_reports[i]);
      automatic["layers"].push_back({{"layer_id", geometry[i].at("layer_id")},
                                     {"keys", choices[i].keys.Name()},
                                     {"values", choices[i].values.Name()},
                                     {"k_bits", BitsOf(choices[i].k_option())},
                                     {"v_bits", BitsOf(choices[i].v_option())},
                                     {"quant_group_size", choices[i].quant_group_size}});
    }
  }

  AtomicDirectory directory(path);
  const std::filesystem::path& staging = directory.staging();
  SafetensorsWriter rotations(
      staging / kRotationsFile, declarations,
      {{"schema", fmt::format("{} {}", kArtifactSchema, kArtifactVersion)}});
  MomentsWriter moments(staging / kMomentsFile);
  for (size_t i = 0; i < layers.count; ++i) {
    LayerResult layer = layers.load(i);
    if (!choices.empty()) {
      std::swap(choices[i].k, layer.automatic.k);
      std::swap(choices[i].v, layer.automatic.v);
      layer.automatic = std::move(choices[i]);
    }
    ForEachTensor(layer, [&](const std::string& name, const std::vector<int64_t>&,
                             const std::vector<double>& values) {
      const std::vector<float> data(values.begin(), values.end());
      rotations.Write(name, std::as_bytes(std::span(data)));
    });
    moments.Add(layer.moments);
  }
  rotations.Commit();
  moments.Commit();

  Json serving = info.serving;
  serving["k_clip_ratio"] = k.Best();
  serving["v_clip_ratio"] = v.Best();
  serving["k_clip_ratio_shared"] = k_shared.Best();
  serving["v_clip_ratio_shared"] = v_shared.Best();
  serving["clip_chosen"] = k.error.empty() ? "fixed"
                                           : "least held-out quantization error weighted with the "
                                             "calibration importance, summed over layers";
  if (!choices.empty()) {
    serving["auto"] = serving_choice;
    serving["sink_tokens"] = serving_choice.at("sink_tokens");
    serving["recent_tokens"] = serving_choice.at("recent_tokens");
  }
  Json data = info.data;
  if (data.is_object())
    data.erase("fingerprints");  // for programs that compare data sets: the manifest has them
  Json report = MakeReport({{"model", info.model},
                            {"data", data},
                            {"calibration", info.calibration},
                            {"serving", serving}},
                           layer_reports);
  WriteFileAtomically(staging / kReportFile, CanonicalJson(report));
  WriteFileAtomically(staging / kReportPageFile, ReportPage(report));
  WriteFileAtomically(staging / kCardFile, ModelCard(report));
  WriteFileAtomically(staging / kTimingsFile, CanonicalJson(info.timings));

  Json manifest = {{"$schema", {{"name", kArtifactSchema}, {"version", kArtifactVersion}}},
                   {"files", DigestsOf(staging, {kRotationsFile, kMomentsFile, kReportFile,
                                                 kReportPageFile, kCardFile})},
                   {"geometry", geometry},
                   {"model", info.model},
                   {"data", info.data},
                   {"calibration", info.calibration},
                   {"serving", serving},
                   {"program", info.program},
                   {"invariants", report.at("summary")}};
  if (!automatic.is_null()) manifest["auto"] = automatic;
  WriteFileAtomically(staging / kManifestFile, CanonicalJson(manifest));
  directory.Commit();
  return report;
}

}  // namespace oscar
