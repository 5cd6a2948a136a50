// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/recall.h"

#include <set>
#include <string>
#include <utility>

#include "linalg/base/check.h"

namespace oscar {

Recall::Recall(std::span<const NeedleSample> samples, std::span<const NeedleScore> exact)
    : samples_(samples) {
  const Json report = NeedleReport(samples, exact);
  std::set<std::pair<std::string, int64_t>> counting;
  json_ = {{"tasks", Json::array()}};
  for (const Json& row : report.at("by_task")) {
    const bool counts = row.at("accuracy").get<double>() >= kMeasurableRecall;
    if (counts) counting.emplace(row.at("task"), row.at("length"));
    json_["tasks"].push_back({{"task", row.at("task")},
                              {"length", row.at("length")},
                              {"samples", row.at("samples")},
                              {"exact", row.at("accuracy")},
                              {"counts", counts}});
  }
  for (size_t i = 0; i < samples.size(); ++i)
    if (counting.contains({samples[i].task, samples[i].length})) counted_.push_back(i);
  json_["measurable"] = any();
}

Json Recall::Report(std::span<const NeedleScore> scores) const {
  OSCAR_CHECK_EQ(scores.size(), samples_.size());
  std::vector<NeedleSample> samples;
  std::vector<NeedleScore> of_them;
  for (const size_t i : counted_) {
    samples.push_back(samples_[i]);
    of_them.push_back(scores[i]);
  }
  return NeedleReport(samples, of_them);
}

}  // namespace oscar
