// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes an artifact in a staging directory and records the digest of every file. The manifest is
// written last, and one rename publishes the directory. Trap: data that differs between two equal
// runs (dates, host, durations) must not enter any file except timings.json.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "calib/consumers.h"
#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"

namespace oscar {

// An artifact's provenance. Each object becomes a member of the manifest, except `timings`. Members
// that are unknown are left out.
struct ArtifactInfo {
  Json model;        // id, revision, digests of config and weights, model_type, the rope that was
                     // applied, tokenizer digest
  Json data;         // name, digest, counts
  Json calibration;  // value target, composition, held-out rule, minimum tokens, resolved
                     // configuration
  Json program;      // version, commit, LibTorch, device, compute dtype
  Json serving;      // recommended settings; WriteArtifact adds the clip ratios
  Json timings;      // goes to timings.json
  // The options of automatic choices, used only if layers have choices. WriteArtifact makes the
  // decisions that span layers (calib/choose/layer_plan.h).
  AutoOptions automatic;
};

class ChoicePlans;

// Loads layers one at a time, so that memory never holds a whole artifact.
struct LayerSource {
  size_t count = 0;
  std::function<LayerResult(size_t)> load;
};

// An unfinished artifact in a staging directory, which is removed unless the artifact is written.
// Add writes a layer's moments while the layer is in memory. It also collects what is needed from
// all layers before the first one can be written: reports, tensor shapes and the layers' choices.
class ArtifactDraft {
 public:
  // Throws InputError if `path` exists. `automatic`: as in ArtifactInfo.
  ArtifactDraft(const std::filesystem::path& path, const AutoOptions& automatic);
  ~ArtifactDraft();
  ArtifactDraft(ArtifactDraft&&) noexcept;
  ArtifactDraft& operator=(ArtifactDraft&&) noexcept;

  void Add(const LayerResult& layer);  // the next layer
  size_t layers() const;
  const Json& last_report() const;  // report of the last added layer
  ChoicePlans& choices();

 private:
  friend Json WriteArtifact(const ArtifactInfo&, const LayerSource&, ArtifactDraft);
  struct State;
  std::unique_ptr<State> state_;
};

// Publishes the draft and returns the report (report.h). If it throws ResourceError, nothing is at
// the artifact's path. Layers that are not in the draft yet are loaded twice. For the others,
// `layers` needs to load only MomentsPart::kMeans of the moments.
Json WriteArtifact(const ArtifactInfo& info, const LayerSource& layers, ArtifactDraft draft);
Json WriteArtifact(const std::filesystem::path& path, const ArtifactInfo& info,
                   const LayerSource& layers);

}  // namespace oscar
