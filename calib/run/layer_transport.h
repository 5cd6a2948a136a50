// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Transport between the processes of one calibration. Observations of a layer go to the process
// that fits it; results and hidden states go to the process with the job. If there is only one
// process, nothing is sent. All processes call all functions in the same order. Only Finish is
// called by other threads.
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

// A layer as a job stores it: its result, or for a shard its observations.
struct FinishedLayer {
  LayerResult result;             // for a shard, only the layer's number
  std::vector<NamedTensor> part;  // for a shard, on the host

  void Write(const std::filesystem::path& path) const;
};

// Whether hidden states after a layer go to disk, so that a run can resume there. kNever: no, and
// the model overwrites them. kWithRound: only if all processes have finished a layer in this round.
enum class Commit { kNever, kWithRound, kNow };

class LayerTransport {
 public:
  virtual ~LayerTransport() = default;
  // Returns the transport for `input`. It keeps references to all three.
  static std::unique_ptr<LayerTransport> Of(const CalibrationInput& input,
                                            const HeldOutSplit& split, PhaseTimes& times);

  virtual size_t size() const = 0;                    // processes that take turns to fit layers
  virtual void At(const LayerSpec& layer) const = 0;  // this process begins a layer
  virtual void Tick() const = 0;                      // reports that this process makes progress

  // Returns the index of the layer with which all processes begin.
  virtual size_t FirstLayer(const JobDirectory& job) const = 0;

  // The decision on what all processes do after a layer. The process with the job makes it, after
  // it has learned whether the others want to stop.
  struct Verdict {
    bool stop = false;
    Commit commit = Commit::kNever;
  };
  virtual Verdict Agree(size_t layer_index, const Verdict& own) const = 0;

  // Gives the observations of a layer to the process that fits it. There, the returned function
  // waits for the observations of the other processes (on a GPU, on its caller's stream). In other
  // processes the function is empty.
  using Observed = std::function<LayerOnDevice()>;
  virtual Observed Gather(size_t layer_index, LayerOnDevice own) const = 0;
  // Gives the hidden states of all documents to the process with the job. Only that process calls
  // `all`, which returns the host tensor to fill. On a GPU, the tensor is complete once the current
  // stream is.
  virtual void GatherHidden(const at::Tensor& own,
                            const std::function<at::Tensor()>& all) const = 0;
  // Returns the rows of TextSampleOf in the process with the job; nothing if there are none.
  virtual std::vector<TextRows> GatherText(const ModelSource& model) const = 0;
  // Returns this process's part of the hidden states that the process with the job passes in.
  virtual at::Tensor Scatter(const at::Tensor& all) const = 0;

  // Returns a finished layer in the process with the job. `fit` runs in the process for which
  // Gather returned a function.
  using Fit = std::function<LayerResult(LayerOnDevice)>;
  virtual FinishedLayer Finish(size_t layer_index, const Observed& observed,
                               const Fit& fit) const = 0;
  // Returns the hidden states that are written with the last layer; undefined: none.
  virtual at::Tensor LastHidden() const { return {}; }
};

}  // namespace oscar
