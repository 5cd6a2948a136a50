// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens to a layer after the loop has been through it: its sums become a result, the result
// a file, the file part of the job; of a shard they become a file as they are. On a GPU a layer is
// fitted by a thread and on a stream of its own while the loop is in the next ones, and written by
// another thread as soon as it is fitted. On a CPU all of it is done at once, because everything
// would want the same cores. A layer that is being fitted keeps its keys and values; Put() waits
// where there are too many, or too many wait for the disk. Trap: among ranks Put() waits for
// nothing that another rank has to do (capture/ranks/rank_group.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/observe/statistics_observer.h"
#include "calib/run/calibrate.h"
#include "calib/run/layer_exchange.h"

namespace oscar {

class LayerPipeline {
 public:
  // Keeps references to all of them. `job`: null on ranks that have none. `exchange`: null where
  // there is one rank.
  LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split, JobDirectory* job,
                const LayerExchange* exchange, const CalibrationHooks& hooks, PhaseTimes& times);
  ~LayerPipeline();  // waits for what is under way

  // Whether the hidden states that leave a layer go to disk with it, so that a run can resume
  // there. kNever: the model has gone on from there, and they are lost. The last layer needs none.
  enum class Commit { kIfDue, kNow, kNever };
  // A layer that was observed; its kernels may still be running. Throws what became of a layer
  // before, and reports that one (hooks.on_layer) on this thread.
  void Put(size_t index, LayerOnDevice observed, Commit commit);
  void Finish();  // the same for all

  // Whether a run that stops here loses nothing. Not while a thread works on a layer.
  bool all_committed() const { return fitting_.empty() && round_.empty() && !written_.valid(); }
  // Whether hidden states should go to disk with the next layer that may take them there, and that
  // takes no waiting.
  bool IsCommitDue() const;

 private:
  struct Layer;
  struct Pending {
    size_t index;
    std::shared_future<std::shared_ptr<Layer>> fitted;
    std::shared_future<void> written;  // and all before
  };
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<Layer> Fit(const std::shared_ptr<Layer>& layer,
                             std::optional<c10::Stream> stream);
  void FitHere(Layer& layer, std::optional<c10::Stream> stream);
  void Write(const Layer& layer);  // in order, one at a time
  void WriteHere(const Layer& layer);
  std::string NameOf(const Layer& layer, std::string_view step) const;  // "fitting layer 3"
  void Report(const Layer& layer);
  // Until less than `most` layers are being fitted here.
  void AwaitFits(size_t most);
  void Collect();  // the oldest layer that is being fitted
  bool IsCommit(size_t index, Commit commit) const;
  bool FitsHere(size_t index) const;
  void FinishRound();
  at::Tensor KeepHidden(const at::Tensor& hidden);

  const CalibrationInput& input_;
  const HeldOutSplit& split_;
  JobDirectory* const job_;
  const LayerExchange* const exchange_;
  std::vector<std::shared_ptr<Layer>> round_;  // gathered, but not fitted
  const CalibrationHooks& hooks_;
  PhaseTimes& times_;
  std::vector<c10::Stream> streams_;  // of the fits, by turns; none: a layer is fitted at once
  Clock::time_point last_commit_ = Clock::now(), last_report_ = Clock::now(),
                    last_write_ = Clock::now();
  Clock::time_point begin_ = Clock::now();
  size_t put_ = 0, next_layer_ = 0;
  uint64_t read_since_commit_ = 0;  // bytes of weights
  at::Tensor host_hidden_;          // pinned, of hidden_written_
  std::shared_future<void> hidden_written_;
  std::deque<Pending> fitting_;                     // in order
  std::shared_future<void> written_;                // of the last that was put
  std::deque<std::shared_future<void>> collected_;  // of those that were, and may not be on disk
};

}  // namespace oscar
