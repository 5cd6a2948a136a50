// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/show/fitting.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/model_config.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/checkpoint/weights_sample.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

bool Holds(const std::string& text, const std::string& part) {
  const auto lower = [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

auto Rank(const IndexRow& row) {
  return std::tuple(row.kl.value_or(kUnknown), row.bits.value_or(kUnknown));
}

}  // namespace

ModelDigests DigestsOfModel(const fs::path& model_directory) {
  ModelDigests digests{DigestModelConfig(model_directory).sha256, ""};
  if (HasWeightFiles(model_directory)) {
    const Checkpoint checkpoint = Checkpoint::Open(model_directory);
    digests.weights_sha256 =
        WeightsDigest(SampleWeightFiles(checkpoint.directory(), checkpoint.files()));
  }
  return digests;
}

std::vector<Fitting> FindFitting(const ZooIndex& index, const ModelDigests& model) {
  std::vector<Fitting> found;
  for (const IndexRow& row : index.rows) {
    if (!row.yanked.empty() || row.config_sha256 != model.config_sha256) continue;
    const bool known = !row.weights_sha256.empty() && !model.weights_sha256.empty();
    if (known && row.weights_sha256 != model.weights_sha256) continue;  // another checkpoint
    found.push_back({&row, known});
  }
  std::ranges::stable_sort(found, [](const Fitting& a, const Fitting& b) {
    const auto order = [](const Fitting& f) {
      return std::tuple(!f.weights_known, f.row->gate.empty(), Rank(*f.row));
    };
    if (order(a) != order(b)) return order(a) < order(b);
    return a.row->version > b.row->version;
  });
  return found;
}

std::vector<const IndexRow*> Search(const ZooIndex& index, const SearchQuery& query) {
  std::vector<const IndexRow*> found;
  for (const IndexRow& row : index.rows) {
    if (!query.yanked && !row.yanked.empty()) continue;
    if (!Holds(row.name.text(), query.text) && !Holds(row.model, query.text)) continue;
    if (!row.config_sha256.starts_with(query.base) || !Holds(row.method, query.method)) continue;
    if (!query.runtime.empty() &&
        std::ranges::find(row.runtimes, query.runtime) == row.runtimes.end())
      continue;
    if (query.max_bits && row.bits.value_or(kUnknown) > *query.max_bits) continue;
    if (query.max_kl && row.kl.value_or(kUnknown) > *query.max_kl) continue;
    found.push_back(&row);
  }
  std::ranges::stable_sort(
      found, [](const IndexRow* a, const IndexRow* b) { return Rank(*a) < Rank(*b); });
  return found;
}

}  // namespace oscar
