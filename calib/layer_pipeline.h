// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens to a layer after the loop has been through it: its sums become a result, the result
// a file, the file part of the job. On a GPU a layer is fitted by a thread and on a stream of its
// own while the loop is in the next ones, and its file is written by another thread. On a CPU all
// of it is done at once, because everything would want the same cores. Trap: a layer that is being
// fitted keeps its keys and values; Put() waits where there are too many.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "calib/calibrate.h"
#include "calib/statistics_observer.h"

namespace oscar {

class LayerPipeline {
 public:
  // Keeps references to all of them.
  LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split, JobDirectory& job,
                const CalibrationHooks& hooks, PhaseTimes& times);
  ~LayerPipeline();  // waits for what is under way

  // The layer that `observer` has seen; its kernels may still be running. `commit`: the hidden
  // states that leave it go to disk with it, at once. Throws what became of a layer before, and
  // reports that one (hooks.on_layer) on this thread.
  void Put(size_t index, StatisticsObserver& observer, bool commit);
  void Finish();  // the same for all

  // Whether a run that stops here loses nothing. Not while a thread works on a layer.
  bool all_committed() const { return fitting_.empty() && !writing_.valid(); }

 private:
  struct Layer;
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<Layer> Fit(const std::shared_ptr<Layer>& layer,
                             std::optional<c10::Stream> stream);
  void Write(const Layer& layer);
  void Deliver(const std::shared_ptr<Layer>& layer);  // a fitted layer: written, reported
  void Collect();                                     // the oldest layer that is being fitted
  at::Tensor KeepHidden(const at::Tensor& hidden);

  const CalibrationInput& input_;
  const HeldOutSplit& split_;
  JobDirectory& job_;
  const CalibrationHooks& hooks_;
  PhaseTimes& times_;
  std::vector<c10::Stream> streams_;  // of the fits, by turns; none: a layer is fitted at once
  Clock::time_point last_commit_ = Clock::now(), last_report_ = Clock::now();
  at::Tensor host_hidden_;        // pinned, where hidden states wait to be written
  size_t host_hidden_until_ = 0;  // the layer, by index, with whose file they are
  std::deque<std::future<std::shared_ptr<Layer>>> fitting_;  // in order
  std::future<void> writing_;
  size_t writing_index_ = 0;  // the layer that is being written, or was last
};

}  // namespace oscar
