// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which recall tasks can measure a cache. If a model fails a task even with an exact cache,
// the result depends on the model: an arm's errors look like damage by its cache, and its right
// answers are luck. So a task counts, at a length, if the exact model finds at least nine of ten
// answers.
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
  // Returns "recall" or "tool_call" of the report's "validation": {"measurable", "tasks"}. Each
  // task has "task", "length", "samples", "exact" (accuracy) and "counts".
  const Json& ToJson() const { return json_; }
  // Returns "needle" of an arm: NeedleReport() of the samples that count; needs at least one.
  measures::NeedleRecall Report(std::span<const NeedleScore> scores) const;

 private:
  std::span<const NeedleSample> samples_;
  std::vector<size_t> counted_;  // indices into samples_
  Json json_;
};

}  // namespace oscar
