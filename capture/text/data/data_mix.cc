// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/data_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns how many tokens each class may take: by weight, and never more than it has.
std::vector<double> Quotas(const std::vector<MixClass>& classes, int64_t budget) {
  std::vector<double> quotas(classes.size(), 0);
  std::vector<bool> full(classes.size(), false);
  double left = static_cast<double>(budget);
  while (true) {
    double weight = 0;
    for (size_t i = 0; i < classes.size(); ++i) weight += full[i] ? 0 : classes[i].weight;
    if (weight <= 0) return quotas;
    bool changed = false;
    const double unit = left / weight;
    for (size_t i = 0; i < classes.size(); ++i) {
      if (full[i] || unit * classes[i].weight < static_cast<double>(classes[i].tokens)) continue;
      quotas[i] = static_cast<double>(classes[i].tokens);
      left -= quotas[i];
      full[i] = changed = true;
    }
    if (changed) continue;
    for (size_t i = 0; i < classes.size(); ++i) {
      if (!full[i]) quotas[i] = unit * classes[i].weight;
    }
    return quotas;
  }
}

}  // namespace

void CheckMix(const MixOptions& options, size_t num_sources) {
  if (!options.weights.empty() && options.weights.size() != num_sources) {
    throw UsageError(
        fmt::format("--data-weights: {} weights for {} files of --data; give one weight per file",
                    options.weights.size(), num_sources));
  }
  double sum = 0;
  for (const double weight : options.weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      throw UsageError(
          fmt::format("--data-weights: {} is not a weight; expected at least 0", weight));
    sum += weight;
  }
  if (!options.weights.empty() && sum <= 0) throw UsageError("--data-weights: all weights are 0");
  for (size_t i = 0; i < options.buckets.size(); ++i) {
    if (options.buckets[i] > (i == 0 ? 0 : options.buckets[i - 1])) continue;
    throw UsageError(
        fmt::format("--length-buckets: {} is not larger than the length before it; expected "
                    "ascending lengths in tokens such as 1024 4096 16384",
                    options.buckets[i]));
  }
}

Mix ChooseMix(const std::vector<MixDocument>& documents, const MixOptions& options,
              int64_t budget) {
  Mix mix;
  std::vector<std::vector<size_t>> queues;  // per class, in order
  std::map<std::pair<size_t, size_t>, size_t> class_of;
  for (size_t i = 0; i < documents.size(); ++i) {
    const MixDocument& document = documents[i];
    if (document.tokens == 0) continue;
    const auto bucket = static_cast<size_t>(
        std::ranges::lower_bound(options.buckets, document.tokens) - options.buckets.begin());
    const auto [found, is_new] =
        class_of.emplace(std::pair(document.source, bucket), mix.classes.size());
    if (is_new) {
      MixClass added;
      added.source = document.source;
      added.longest = bucket < options.buckets.size() ? options.buckets[bucket] : 0;
      added.weight = options.weights.empty() ? 1 : options.weights[document.source];
      mix.classes.push_back(added);
      queues.emplace_back();
    }
    ++mix.classes[found->second].documents;
    mix.classes[found->second].tokens += document.tokens;
    queues[found->second].push_back(i);
  }
  const std::vector<double> quotas = Quotas(mix.classes, budget);
  std::vector<size_t> next(queues.size(), 0);
  while (true) {
    // Chooses, among the classes with a document that fits, the one furthest behind its share.
    size_t chosen = queues.size();
    double behind = 2;
    for (size_t c = 0; c < queues.size(); ++c) {
      const auto room = quotas[c] - static_cast<double>(mix.classes[c].tokens_used);
      while (next[c] < queues[c].size() &&
             static_cast<double>(documents[queues[c][next[c]]].tokens) > room + 0.5) {
        ++next[c];
      }
      if (next[c] == queues[c].size()) continue;
      const double done = static_cast<double>(mix.classes[c].tokens_used) / quotas[c];
      if (done >= behind) continue;
      behind = done;
      chosen = c;
    }
    if (chosen == queues.size()) return mix;
    const size_t document = queues[chosen][next[chosen]++];
    mix.order.push_back(document);
    ++mix.classes[chosen].documents_used;
    mix.classes[chosen].tokens_used += documents[document].tokens;
  }
}

}  // namespace oscar
