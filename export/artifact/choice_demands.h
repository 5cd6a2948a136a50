// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The features that a choice needs from a runtime (such as key means), compared with those that the
// runtime supports (calib/consumers.h). The calibration already follows these rules; the stored
// choice is checked again before it is written for a server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calib/consumers.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

class ChoiceDemands {
 public:
  void Add(int layer_id, const StoredChoice& choice);

  // Returns a line for each needed feature that the runtime lacks, like "key means (layers 0, 3)".
  // Empty if it supports all of them.
  std::vector<std::string> NotCarriedBy(const ConsumerRules& rules) const;

 private:
  using Layers = std::vector<int>;
  Layers per_head_, key_mean_, query_matrix_, clip_of_head_, more_bits_, fitted_scales_;
  std::vector<double> k_clip_, v_clip_;  // ratios of the layers that have only one
  std::vector<int64_t> groups_;
};

// Collects the demands of all layers. Throws InputError if the artifact has no such choice.
ChoiceDemands DemandsOf(const Artifact& artifact, std::string_view choice);

}  // namespace oscar
