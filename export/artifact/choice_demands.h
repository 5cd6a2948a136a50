// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the automatic choices of a model ask of the runtime that loads them, against what a runtime
// takes (calib/auto_options.h). Trap: what counts is the choice as it is stored, not the --for that
// it was made with: a choice made for any runtime may happen to fit one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/auto_options.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

class ChoiceDemands {
 public:
  void Add(int layer_id, const StoredChoice& choice);

  // Of what a runtime cannot carry, one line each: "key means (layers 0, 3)"; empty: it carries
  // everything.
  std::vector<std::string> NotCarriedBy(const ConsumerRules& rules) const;

 private:
  using Layers = std::vector<int>;
  Layers per_head_, key_mean_, query_matrix_, clip_of_head_, more_bits_;
  std::vector<double> k_clip_, v_clip_;  // of layers with one ratio
  std::vector<int64_t> groups_;
};

// Of all layers; throws InputError for an artifact without choices.
ChoiceDemands DemandsOf(const Artifact& artifact);

}  // namespace oscar
