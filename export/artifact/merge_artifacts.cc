// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/merge_artifacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "calib/job/job_directory.h"
#include "calib/job/refit_layer.h"
#include "calib/moments/moments_file.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_reader.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/merged_choices.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

LayerMoments Sum(const std::vector<MomentsReader>& files, int layer_id) {
  LayerMoments sum = files.at(0).Read(layer_id);
  for (size_t i = 1; i < files.size(); ++i) sum.Merge(files[i].Read(layer_id));
  return sum;
}

void CheckSameModel(const Artifact& first, const Artifact& other) {
  const std::vector<std::string> differences =
      JsonDifferences(first.manifest().at("model"), other.manifest().at("model"));
  if (differences.empty() && first.layer_ids() == other.layer_ids()) return;
  std::string list;
  for (const std::string& line : differences) list += "\n  " + line;
  throw InputError(
      fmt::format("{} and {} belong to different models, so their moments cannot be added:{}",
                  first.directory().string(), other.directory().string(),
                  list.empty() ? " their layers differ" : list));
}

// Collects the data of a calibration run; for a merged artifact, the data of all its runs.
void AddSources(const Json& data, std::vector<Json>& sources) {
  if (data.contains("sources")) {
    for (const Json& source : data.at("sources")) AddSources(source, sources);
  } else {
    sources.push_back(data);
  }
}

// Throws InputError if two artifacts share data, which would get twice the weight and be counted
// twice.
void CheckNoneTwice(const std::vector<Artifact>& artifacts) {
  std::vector<std::pair<Json, std::string>> known;
  for (const Artifact& artifact : artifacts) {
    std::vector<Json> sources;
    AddSources(JsonMember(artifact.manifest(), "data", kManifestFile), sources);
    for (const Json& source : sources) {
      const auto same = std::ranges::find_if(known, [&](const auto& other) {
        return source.contains("digest") && source == other.first;
      });
      if (same == known.end()) {
        known.emplace_back(source, artifact.directory().string());
        continue;
      }
      throw InputError(
          fmt::format("{} and {} were calibrated on the same data ({}, digest {}), so that data "
                      "would be counted twice; leave out one of the two",
                      same->second, artifact.directory().string(),
                      source.value("name", std::string("unnamed")), source.at("digest").dump()));
    }
  }
}

// Returns the artifact with the most tokens among those that have choices; null if none has.
const Artifact* ChoicesFrom(const std::vector<Artifact>& artifacts) {
  const Artifact* from = nullptr;
  int64_t most = 0;
  for (const Artifact& artifact : artifacts) {
    const int64_t tokens =
        JsonInt(artifact.manifest().at("geometry").at(0), "tokens", kManifestFile);
    if (!artifact.has_choices() || tokens <= most) continue;
    from = &artifact;
    most = tokens;
  }
  return from;
}

}  // namespace

Json MergeArtifacts(const std::vector<std::filesystem::path>& paths,
                    const CalibrationOptions& options, const Json& program,
                    const std::filesystem::path& output) {
  if (paths.size() > 1 && options.fit.value_target == ValueTarget::kDiagonal) {
    throw InputError(
        "the weights k C_Q kᵀ of the value target 'diagonal' use the query covariance of each "
        "run's own tokens, so the sums of two runs cannot be added; use --value-target "
        "attention_output, or calibrate once on all the data");
  }
  std::vector<Artifact> artifacts;
  std::vector<MomentsReader> moments;
  Json sources = Json::array(), data = Json::array();
  for (const auto& path : paths) {
    artifacts.push_back(Artifact::Open(path));
    CheckSameModel(artifacts.front(), artifacts.back());
    moments.emplace_back(path / kMomentsFile);
    sources.push_back(artifacts.back().identity());
    data.push_back(artifacts.back().manifest().at("data"));
  }

  CheckNoneTwice(artifacts);
  ArtifactInfo info;
  info.model = artifacts.front().manifest().at("model");
  info.data = {{"name", fmt::format("merge of {} artifacts", paths.size())}, {"sources", data}};
  info.calibration = {
      {"value_target", ValueTargetName(options.fit.value_target)},
      {"composition", CompositionName(options.fit.composition)},
      {"merged_from", sources},
      {"clip",
       {{"mode", "fixed"}, {"fixed_k", options.clip.fixed_k}, {"fixed_v", options.clip.fixed_v}}}};
  for (const char* fact : {"latent_layers", "hadamard_block_of_dim"}) {  // properties of the model
    const Json& calibration = artifacts.front().manifest().at("calibration");
    if (calibration.contains(fact)) info.calibration[fact] = calibration.at(fact);
  }
  info.program = program;
  info.serving = {{"quant_group_size", options.clip.quant_group_size},
                  {"sink_tokens", options.sink_tokens},
                  {"recent_tokens", options.recent_tokens}};
  info.timings = Json::object();
  const std::vector<int> layer_ids = artifacts.front().layer_ids();
  std::optional<MergedChoices> choices;
  if (const Artifact* from = ChoicesFrom(artifacts); from != nullptr && options.automatic.enabled) {
    choices.emplace(*from);
    Json made = {{"from", from->identity()}, {"not_made_again", Json::array()}};
    for (const int layer_id : layer_ids) {
      const std::vector<std::string> why = choices->NotMadeAgain(Sum(moments, layer_id));
      for (const std::string& line : why) made["not_made_again"].push_back(line);
    }
    info.calibration["choices"] = std::move(made);
    info.calibration["auto"] = from->manifest().at("calibration").at("auto");
    info.automatic = choices->options();
  }
  const auto load = [&](size_t i) {
    LayerResult layer = RefitLayer(Sum(moments, layer_ids[i]), options.fit, options.clip);
    if (choices) choices->Fit(layer);
    return layer;
  };
  return WriteArtifact(output, info, {layer_ids.size(), load});
}

}  // namespace oscar
