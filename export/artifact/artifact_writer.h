// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes an artifact: staged beside its final place, every file digested, manifest last, published
// by one rename. Trap: nothing that differs between two equal runs (dates, host, durations) may
// enter any file but timings.json.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "calib/consumers.h"
#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Provenance of an artifact, one member of the manifest each. Objects; what is unknown is absent.
struct ArtifactInfo {
  Json model;  // id, revision, digests of config and weights, model_type, rope really applied,
               // tokenizer digest
  Json data;   // name, digest, counts
  Json calibration;  // value target, composition, held-out rule, minimum tokens, resolved
                     // configuration
  Json program;      // version, commit, LibTorch, device, compute dtype
  Json serving;      // recommended parameters; WriteArtifact adds the clip ratios
  Json timings;      // goes to timings.json
  // What automatic choices are constrained by; only where layers have some. WriteArtifact decides
  // what layers share (calib/choose/layer_plan.h).
  AutoOptions automatic;
};

// Layers are loaded one at a time, twice, so that an artifact never lies in memory as a whole.
struct LayerSource {
  size_t count = 0;
  std::function<LayerResult(size_t)> load;
};

// Throws InputError if `path` exists; ResourceError leaves nothing at `path`. Returns the report
// (report.h).
Json WriteArtifact(const std::filesystem::path& path, const ArtifactInfo& info,
                   const LayerSource& layers);

}  // namespace oscar
