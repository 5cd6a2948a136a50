// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which recall tasks say something about a cache. A task that the model fails with its cache
// untouched measures the model: what an arm loses in it looks like damage and what it keeps like
// luck. So a task counts, at a length, where the exact model finds at least nine answers of ten.
#pragma once

#include <span>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/evaluate/needle.h"

namespace oscar {

inline constexpr double kMeasurableRecall = 0.9;

class Recall {
 public:
  // `exact`: scores of the exact arm, one per sample. Keeps the span.
  Recall(std::span<const NeedleSample> samples, std::span<const NeedleScore> exact);

  bool any() const { return !counted_.empty(); }  // whether recall can be measured at all
  const std::vector<size_t>& counted() const { return counted_; }  // indices of samples that count
  // "recall" and "tool_call" of the report's "validation": {"measurable", "tasks"}, the latter with
  // "task", "length", "samples", "exact" (accuracy) and "counts" each.
  const Json& ToJson() const { return json_; }
  // "needle" of an arm: NeedleReport() over the samples that count, of which there must be some.
  measures::NeedleRecall Report(std::span<const NeedleScore> scores) const;

 private:
  std::span<const NeedleSample> samples_;
  std::vector<size_t> counted_;  // of samples_
  Json json_;
};

}  // namespace oscar
