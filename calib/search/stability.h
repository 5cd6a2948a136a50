// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks whether a layer's choice had enough tokens, by fitting its recipes to each half of them
// and comparing scores. From construction on, fits run on their own threads and read the
// constructor's arguments.
#pragma once

#include <future>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/choose/recipe_fit.h"
#include "calib/observe/statistics_observer.h"
#include "calib/search/scorer.h"
#include "capture/model/spec/rope_spec.h"

namespace oscar {

class HalfFits {
 public:
  // Keeps a reference to `observed`. `choice` must have its context and the recipe of its keys.
  HalfFits(const ObservedLayer& observed, const AutoChoice& choice);
  HalfFits(const HalfFits&) = delete;
  HalfFits& operator=(const HalfFits&) = delete;

  // Measures a choice that has its recipes and options. Does nothing if no half was kept. Values
  // are judged with the target attention_output, the only one for which halves have moments. Call
  // this once.
  Stability Measure(const AutoChoice& choice, const AutoScorer& scorer);

 private:
  const ObservedLayer& observed_;
  LayerMoments second_;                       // moments without observed.first_half
  std::vector<std::future<CacheSide>> keys_;  // for each half
};

}  // namespace oscar
