// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/artifact_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "calib/moments/moments_file.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/choice_plans.h"
#include "export/artifact/model_card.h"
#include "export/artifact/report.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

using Declarations = std::vector<SafetensorsWriter::Declaration>;

// Visits the tensors of one layer in file order: `visit(name, shape, values)`.
template <typename Visit>
void ForEachTensor(const LayerResult& layer, Visit visit) {
  const LayerMoments& moments = layer.moments;
  const auto side = [&](char name, bool shared, const SideResult& s) {
    if (s.num_rotations == 0) return;
    const auto tensor = [&](const char* what, std::vector<int64_t> shape,
                            const std::vector<double>& values) {
      if (values.empty()) return;
      OSCAR_CHECK(
          IsArtifactTensor(shared ? &ArtifactTensor::shared : &ArtifactTensor::own, name, what));
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
  for (const auto& [name, maxima, dim] :
       {std::tuple('k', &moments.key_abs_max, moments.head_dim),
        std::tuple('v', &moments.value_abs_max, moments.v_head_dim)}) {
    if (!maxima->empty())
      visit(RotationTensorName(moments.layer_id, name, false, "abs_max"),
            {moments.num_kv_heads, dim}, *maxima);
  }
}

Json DigestsOf(const std::filesystem::path& directory, const std::vector<const char*>& files) {
  std::vector<std::future<Json>> found;  // in parallel
  for (const char* file : files) {
    found.push_back(std::async(std::launch::async, [path = directory / file] {
      return Json(DigestToJson(DigestFile(path)));
    }));
  }
  Json digests = Json::object();
  for (size_t i = 0; i < files.size(); ++i) digests[files[i]] = found[i].get();
  return digests;
}

Json Geometry(const LayerMoments& moments) {
  return {{"layer_id", moments.layer_id},         {"num_q_heads", moments.num_q_heads},
          {"num_kv_heads", moments.num_kv_heads}, {"head_dim", moments.head_dim},
          {"v_head_dim", moments.v_head_dim},     {"tokens", moments.tokens}};
}

}  // namespace

struct ArtifactDraft::State {
  // Sums one side's clip errors over layers and finds the ratio with the smallest sum, for runtimes
  // that use one ratio for all layers.
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

  AtomicDirectory directory;
  MomentsWriter moments;
  std::vector<Declarations> declared;  // one per layer
  std::vector<Json> reports;           // one per layer
  Json geometry = Json::array();
  ClipOverLayers k = {}, v = {}, k_shared = {}, v_shared = {};
  ChoicePlans choices;

  State(const std::filesystem::path& path, const AutoOptions& automatic)
      : directory(path), moments(directory.staging() / kMomentsFile), choices(automatic) {}
};

ArtifactDraft::ArtifactDraft(const std::filesystem::path& path, const AutoOptions& automatic)
    : state_(std::make_unique<State>(path, automatic)) {}
ArtifactDraft::~ArtifactDraft() = default;
ArtifactDraft::ArtifactDraft(ArtifactDraft&&) noexcept = default;
ArtifactDraft& ArtifactDraft::operator=(ArtifactDraft&&) noexcept = default;

size_t ArtifactDraft::layers() const { return state_->reports.size(); }
const Json& ArtifactDraft::last_report() const { return state_->reports.back(); }

ChoicePlans& ArtifactDraft::choices() { return state_->choices; }

void ArtifactDraft::Add(const LayerResult& layer) {
  State& all = *state_;
  all.moments.Add(layer.moments);
  all.declared.emplace_back();
  ForEachTensor(layer,
                [&](std::string name, std::vector<int64_t> shape, const std::vector<double>&) {
                  all.declared.back().push_back({std::move(name), DType::kF32, std::move(shape)});
                });
  all.reports.push_back(LayerReport(layer));
  all.geometry.push_back(Geometry(layer.moments));
  all.choices.Add(layer);
  all.k.Add(layer.clip_candidates, layer.k);
  all.v.Add(layer.clip_candidates, layer.v);
  all.k_shared.Add(layer.clip_candidates, layer.k_shared);
  all.v_shared.Add(layer.clip_candidates, layer.v_shared);
  if (!layer.moments.latent) return;
  // A latent is stored and clipped only once, so its two sides share one ratio.
  all.k.Add(layer.clip_candidates, layer.v);
  all.v.Add(layer.clip_candidates, layer.k);
  all.k_shared.Add(layer.clip_candidates, layer.v_shared);
  all.v_shared.Add(layer.clip_candidates, layer.k_shared);
}

Json WriteArtifact(const std::filesystem::path& path, const ArtifactInfo& info,
                   const LayerSource& layers) {
  return WriteArtifact(info, layers, ArtifactDraft(path, info.automatic));
}

Json WriteArtifact(const ArtifactInfo& info, const LayerSource& layers, ArtifactDraft draft) {
  for (size_t i = draft.layers(); i < layers.count; ++i) draft.Add(layers.load(i));
  auto& [directory, moments, declared, layer_reports, geometry, k, v, k_shared, v_shared, choices] =
      *draft.state_;
  moments.Commit();
  choices.Finish();
  Declarations declarations;
  for (size_t i = 0; i < layers.count; ++i) {
    std::ranges::move(declared[i], std::back_inserter(declarations));
    if (choices.empty()) continue;
    choices.ForEachTensor(
        i, nullptr, [&](std::string name, std::vector<int64_t> shape, const std::vector<double>*) {
          declarations.push_back({std::move(name), DType::kF32, std::move(shape)});
        });
    choices.AddTo(i, layer_reports[i]);
  }

  const std::filesystem::path& staging = directory.staging();
  SafetensorsWriter rotations(
      staging / kRotationsFile, declarations,
      {{"schema", fmt::format("{} {}", kArtifactSchema, kArtifactVersion)}});
  for (size_t i = 0; i < layers.count; ++i) {
    const LayerResult layer = layers.load(i);
    const auto write = [&](const std::string& name, const std::vector<double>& values) {
      const std::vector<float> data(values.begin(), values.end());
      rotations.Write(name, std::as_bytes(std::span(data)));
    };
    ForEachTensor(layer, [&](const std::string& name, const std::vector<int64_t>&,
                             const std::vector<double>& values) { write(name, values); });
    if (!choices.empty()) {
      choices.ForEachTensor(i, &layer,
                            [&](const std::string& name, const std::vector<int64_t>&,
                                const std::vector<double>* values) { write(name, *values); });
    }
  }
  rotations.Commit();

  Json serving = info.serving;
  serving["k_clip_ratio"] = k.Best();
  serving["v_clip_ratio"] = v.Best();
  serving["k_clip_ratio_shared"] = k_shared.Best();
  serving["v_clip_ratio_shared"] = v_shared.Best();
  serving["clip_chosen"] = k.error.empty()
                               ? "fixed"
                               : "least quantization error on held-out tokens, weighted with the "
                                 "calibration importance and summed over layers";
  if (!choices.empty()) {
    serving["auto"] = choices.ServingChoice();
    serving["runtimes"] = choices.Runtimes();
    if (Json budgets = choices.Budgets(); !budgets.empty()) serving["budgets"] = std::move(budgets);
    serving["sink_tokens"] = serving["auto"].at("sink_tokens");
    serving["recent_tokens"] = serving["auto"].at("recent_tokens");
  }
  Json data = info.data;
  if (data.is_object())
    data.erase("fingerprints");  // only in the manifest, for programs that compare data sets
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
  if (!choices.empty()) {
    manifest["auto"] = choices.ManifestAuto();
    manifest["choices"] = choices.ManifestChoices();
  }
  WriteFileAtomically(staging / kManifestFile, CanonicalJson(manifest));
  directory.Commit();
  return report;
}

}  // namespace oscar
