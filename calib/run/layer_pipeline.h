// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Handles a layer after the loop has been through it: its sums become a result, the result a file,
// and the file part of the job. For a shard the sums become a file as they are. On a GPU a thread
// fits a layer on its own stream while the loop is in the next ones, and another thread writes it
// as soon as it is fitted. On a CPU all of it is done at once, because everything would want the
// same cores. A layer that is being fitted keeps its keys and values; Put() waits if there are too
// many of them, or too many wait for the disk. Trap: among ranks Put() waits for nothing that a
// rank which is not as far has to do (capture/ranks/rank_group.h).
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
#include "calib/run/layer_transport.h"

namespace oscar {

class LayerPipeline {
 public:
  // Keeps references to all of them.
  LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split,
                const LayerTransport& transport, JobDirectory& job, const CalibrationHooks& hooks,
                PhaseTimes& times);
  ~LayerPipeline();  // waits for what is under way

  // Returns what to do after a layer that was not put yet. On a GPU hidden states go to disk when
  // that is due and takes no waiting.
  Commit CommitAfter(size_t index) const;
  // Takes a layer that was observed; its kernels may still be running. Reports an earlier layer
  // (hooks.on_layer) on this thread, or throws the error that it ended with. The last layer needs
  // no hidden states.
  void Put(size_t index, LayerOnDevice observed, Commit commit);
  void Finish();  // the same for all

  // Whether a run that stops here loses nothing; false while a thread works on a layer.
  bool all_committed() const { return fitting_.empty() && round_.empty() && !written_.valid(); }

 private:
  struct Layer;
  struct Pending {
    bool fits_here;
    std::shared_future<std::shared_ptr<Layer>> fitted;
    std::shared_future<void> written;  // and all before
  };
  using Clock = std::chrono::steady_clock;
  void Fit(Layer& layer, std::optional<c10::Stream> stream);
  void Write(const Layer& layer);  // in order, one at a time
  void WriteHere(const Layer& layer);
  std::string NameOf(const Layer& layer, std::string_view step) const;  // "fitting layer 3"
  void Report(const Layer& layer);
  // Waits until fewer than `most` layers are being fitted here.
  void AwaitFits(size_t most);
  void Collect();  // the oldest layer that is being fitted
  bool EndsRound(size_t index) const { return (index + 1) % transport_.size() == 0; }
  void FinishRound();
  at::Tensor KeepHidden(const at::Tensor& hidden);

  const CalibrationInput& input_;
  const HeldOutSplit& split_;
  const LayerTransport& transport_;
  JobDirectory& job_;
  std::vector<std::shared_ptr<Layer>> round_;  // gathered, but not fitted
  const CalibrationHooks& hooks_;
  PhaseTimes& times_;
  std::vector<c10::Stream> streams_;  // of the fits, by turns; none: a layer is fitted at once
  Clock::time_point last_commit_ = Clock::now(), last_report_ = Clock::now(),
                    last_write_ = Clock::now();
  Clock::time_point begin_ = Clock::now();
  size_t put_ = 0;
  uint64_t read_since_commit_ = 0;  // bytes of weights
  at::Tensor host_hidden_;          // pinned, of hidden_written_
  std::shared_future<void> hidden_written_;
  std::deque<Pending> fitting_;                     // in order
  std::shared_future<void> written_;                // of the last that was put
  std::deque<std::shared_future<void>> collected_;  // of those that were, and may not be on disk
};

}  // namespace oscar
