// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Transport among the processes of one calibration: what they observe of a layer goes to the
// process that fits it; results and hidden states go to the process with the job. With one process
// these are plain values. All processes call all functions in the same order; only Finish is called
// by other threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calib/observe/statistics_observer.h"
#include "calib/observe/text_loss.h"
#include "calib/run/calibrate.h"
#include "calib/run/tensor_file.h"

namespace oscar {

// A layer as a job keeps it: its result, or for a shard what it observed.
struct FinishedLayer {
  LayerResult result;             // of a shard only the number of the layer
  std::vector<NamedTensor> part;  // of a shard, on the host

  void Write(const std::filesystem::path& path) const;
};

// Whether hidden states that leave a layer go to disk with it, so that a run can resume there.
// kNever: the model goes on and overwrites them. kWithRound: only once every process has finished a
// layer.
enum class Commit { kNever, kWithRound, kNow };

class LayerTransport {
 public:
  virtual ~LayerTransport() = default;
  // The transport of `input`. It keeps references to all three.
  static std::unique_ptr<LayerTransport> Of(const CalibrationInput& input,
                                            const HeldOutSplit& split, PhaseTimes& times);

  virtual size_t size() const = 0;  // of a round: processes that fit layers by turns
  virtual void At(const LayerSpec& layer) const = 0;  // this process begins with it
  virtual void Tick() const = 0;                      // this process makes progress

  // The layer, by index, that all processes begin with.
  virtual size_t FirstLayer(const JobDirectory& job) const = 0;

  // The action of all processes after a layer. The process with the job decides it, once it knows
  // whether others want to stop.
  struct Verdict {
    bool stop = false;
    Commit commit = Commit::kNever;
  };
  virtual Verdict Agree(size_t layer_index, const Verdict& own) const = 0;

  // Gives a layer to the process that fits it. There the returned function waits for what the
  // others observed, on a GPU on its caller's stream; elsewhere the function is empty.
  using Observed = std::function<LayerOnDevice()>;
  virtual Observed Gather(size_t layer_index, LayerOnDevice own) const = 0;
  // Gives hidden states of all documents to the process with the job. Only that process calls
  // `all`, for a tensor on its host. On a GPU they are complete once the current stream is.
  virtual void GatherHidden(const at::Tensor& own,
                            const std::function<at::Tensor()>& all) const = 0;
  // Returns the rows of TextSampleOf at the process with the job; nothing if there are none.
  virtual std::vector<TextRows> GatherText(const ModelSource& model) const = 0;
  // Returns this process's hidden states, from those of all documents at the process with the job.
  virtual at::Tensor Scatter(const at::Tensor& all) const = 0;

  // Returns a layer at the process with the job; `fit` makes it where Gather's function is set.
  using Fit = std::function<LayerResult(LayerOnDevice)>;
  virtual FinishedLayer Finish(size_t layer_index, const Observed& observed,
                               const Fit& fit) const = 0;
  // Returns the hidden states that go to disk with the last layer; undefined: none.
  virtual at::Tensor LastHidden() const { return {}; }
};

}  // namespace oscar
