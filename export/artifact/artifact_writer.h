// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes an artifact in a staging directory, records the digest of every file, writes the manifest
// last, and publishes the directory by one rename. Trap: data that differs between two equal runs
// (dates, host, durations) must not enter any file except timings.json.
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

// Provenance of an artifact: objects, one member of the manifest each. Unknown members are absent.
struct ArtifactInfo {
  Json model;        // id, revision, digests of config and weights, model_type, the rope that was
                     // applied, tokenizer digest
  Json data;         // name, digest, counts
  Json calibration;  // value target, composition, held-out rule, minimum tokens, resolved
                     // configuration
  Json program;      // version, commit, LibTorch, device, compute dtype
  Json serving;      // recommended settings; WriteArtifact adds the clip ratios
  Json timings;      // goes to timings.json
  // The constraints of automatic choices, used only if layers have choices. WriteArtifact decides
  // what layers share (calib/choose/layer_plan.h).
  AutoOptions automatic;
};

class ChoicePlans;

// Loads layers one at a time, so that memory never holds a whole artifact.
struct LayerSource {
  size_t count = 0;
  std::function<LayerResult(size_t)> load;
};

// An unfinished artifact in a staging directory, which is removed unless the artifact is written.
// Takes each layer's moments while the layer is in memory, and collects what all layers must supply
// before the first is written: reports, tensor shapes and shared decisions.
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
// the artifact's path. For layers that the draft has seen, `layers` may load only
// MomentsPart::kMeans; other layers are loaded twice.
Json WriteArtifact(const ArtifactInfo& info, const LayerSource& layers, ArtifactDraft draft);
Json WriteArtifact(const std::filesystem::path& path, const ArtifactInfo& info,
                   const LayerSource& layers);

}  // namespace oscar
