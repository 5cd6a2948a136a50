// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/recall.h"

#include <set>
#include <string>
#include <utility>

#include "export/measures/report.h"
#include "linalg/base/check.h"

namespace oscar {

Recall::Recall(std::span<const NeedleSample> samples, std::span<const NeedleScore> exact)
    : samples_(samples) {
  std::set<std::pair<std::string, int64_t>> counting;
  measures::Recall recall;
  for (const measures::NeedleTask& row : NeedleReport(samples, exact).by_task) {
    const bool counts = row.accuracy >= kMeasurableRecall;
    if (counts) counting.emplace(row.task, row.length);
    recall.tasks.push_back({row.task, row.length, row.samples, row.accuracy, counts});
  }
  for (size_t i = 0; i < samples.size(); ++i)
    if (counting.contains({samples[i].task, samples[i].length})) counted_.push_back(i);
  recall.measurable = any();
  json_ = recall;
}

measures::NeedleRecall Recall::Report(std::span<const NeedleScore> scores) const {
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
