// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which recall tasks can measure a cache. If a model fails a task even with an exact cache,
// errors come from the model and right answers are luck, so the task does not measure a cache. For
// each length, a task counts if the model with an exact cache recalls at least nine of ten answers.
#pragma once

#include <span>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/evaluate/needle.h"

namespace oscar {

inline constexpr double kMeasurableRecall = 0.9;

class Recall {
 public:
  // `exact`: scores with the exact cache, one per sample. Keeps `samples`.
  Recall(std::span<const NeedleSample> samples, std::span<const NeedleScore> exact);

  bool any() const { return !counted_.empty(); }  // whether recall can be measured at all
  const std::vector<size_t>& counted() const { return counted_; }  // indices of samples that count
  // Returns the member "recall" or "tool_call" of the report's "validation": {"measurable",
  // "tasks"}. A task has "task", "length", "samples", "exact" (its accuracy with the exact cache)
  // and "counts".
  const Json& ToJson() const { return json_; }
  // Returns the member "needle" of an arm: NeedleReport() over the samples that count, of which
  // there must be one.
  measures::NeedleRecall Report(std::span<const NeedleScore> scores) const;

 private:
  std::span<const NeedleSample> samples_;
  std::vector<size_t> counted_;  // indices into samples_
  Json json_;
};

}  // namespace oscar
