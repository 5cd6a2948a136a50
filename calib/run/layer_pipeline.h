// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Handles a layer after the loop has finished it: turns its sums into a result, writes the result
// to a file, and adds the file to the job. For a shard, the sums themselves are written. On a GPU,
// one thread fits a layer on its own stream while the loop works on the next layers, and another
// thread writes the result. On a CPU these steps run one after another, because they would compete
// for the same cores. A layer keeps its keys and values until it is fitted, so Put() waits if too
// many layers are being fitted or written. Trap: with several ranks, Put() must never wait for a
// rank that is behind (capture/ranks/rank_group.h).
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
  // Keeps references to all arguments.
  LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split,
                const LayerTransport& transport, JobDirectory& job, const CalibrationHooks& hooks,
                PhaseTimes& times);
  ~LayerPipeline();  // waits for pending work

  // Returns how to commit after layer `index`, which was not put yet. On a GPU, hidden states are
  // written only when a commit is due and the previous write has finished.
  Commit CommitAfter(size_t index) const;
  // Takes an observed layer, whose kernels may still be running. On this thread, also reports an
  // earlier layer (hooks.on_layer) or throws its error. The last layer is always committed.
  void Put(size_t index, LayerOnDevice observed, Commit commit);
  void Finish();  // does the same for all remaining layers

  // Whether a run that stops now loses nothing; false while a thread works on a layer.
  bool all_committed() const { return fitting_.empty() && round_.empty() && !written_.valid(); }

 private:
  struct Layer;
  struct Pending {
    bool fits_here;
    std::shared_future<std::shared_ptr<Layer>> fitted;
    std::shared_future<void> written;  // ready once this layer and all earlier ones are written
  };
  using Clock = std::chrono::steady_clock;
  void Fit(Layer& layer, std::optional<c10::Stream> stream);
  void Write(const Layer& layer);  // called in order, one layer at a time
  void WriteHere(const Layer& layer);
  std::string NameOf(const Layer& layer, std::string_view step) const;  // "fitting layer 3"
  void Report(const Layer& layer);
  // Waits until fewer than `most` layers are being fitted in this process.
  void AwaitFits(size_t most);
  void Collect();  // waits for the oldest layer being fitted
  bool EndsRound(size_t index) const { return (index + 1) % transport_.size() == 0; }
  void FinishRound();
  at::Tensor KeepHidden(const at::Tensor& hidden);

  const CalibrationInput& input_;
  const HeldOutSplit& split_;
  const LayerTransport& transport_;
  JobDirectory& job_;
  std::vector<std::shared_ptr<Layer>> round_;  // gathered, not fitted yet
  const CalibrationHooks& hooks_;
  PhaseTimes& times_;
  std::vector<c10::Stream> streams_;  // used by fits in turn; empty: a layer is fitted at once
  Clock::time_point last_commit_ = Clock::now(), last_report_ = Clock::now(),
                    last_write_ = Clock::now();
  Clock::time_point begin_ = Clock::now();
  size_t put_ = 0;
  uint64_t read_since_commit_ = 0;  // weight bytes
  at::Tensor host_hidden_;          // pinned; hidden_written_ writes it
  std::shared_future<void> hidden_written_;
  std::deque<Pending> fitting_;                     // in the order of layers
  std::shared_future<void> written_;                // ready once the latest layer is written
  std::deque<std::shared_future<void>> collected_;  // layers collected, but maybe not written
};

}  // namespace oscar
