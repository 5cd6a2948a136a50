// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the versions of a zoo that were made from a local checkpoint. It compares digests, never
// names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "zoo/store/zoo_index.h"

namespace oscar {

struct ModelDigests {
  std::string config_sha256;
  std::string weights_sha256;  // WeightsDigest; empty if the weights are absent
};
// Reads config.json and a few pages of each weight file. Throws InputError.
ModelDigests DigestsOfModel(const std::filesystem::path& model_directory);

struct Fitting {
  const IndexRow* row;
  bool weights_known;  // whether the weights could be compared; they are then equal
};

// Returns the versions that fit and are not yanked, best first. The order is: known weights before
// unknown, gated before ungated, then a smaller attention KL, fewer bits, a higher version. Rows
// point into `index`.
std::vector<Fitting> FindFitting(const ZooIndex& index, const ModelDigests& model);

// A user's search. Empty members match everything.
struct SearchQuery {
  std::string text = {};  // text in the name or the base model's id, ignoring case
  std::string base = {};  // digest of the base model's config.json, or a prefix of it
  std::string method = {}, runtime = {};
  std::optional<double> max_bits = {}, max_kl = {};
  bool yanked = false;  // includes yanked versions
};
// Returns matches with the smallest attention-KL first.
std::vector<const IndexRow*> Search(const ZooIndex& index, const SearchQuery& query);

}  // namespace oscar
