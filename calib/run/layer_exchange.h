// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What ranks of one calibration hand each other: at every layer what they observed of it, to the
// one that fits it, which then has bit for bit what one process would have; hidden states, to and
// from rank 0, where the job is; and whether to stop. All of it is called by all ranks in the same
// order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "calib/observe/statistics_observer.h"
#include "calib/run/calibrate.h"
#include "capture/ranks/rank_group.h"

namespace oscar {

class LayerExchange {
 public:
  // Keeps references to both.
  LayerExchange(const CalibrationInput& input, const HeldOutSplit& split)
      : input_(input), split_(split) {}

  RankGroup& group() const { return *input_.ranks.group; }
  int OwnerOf(size_t layer_index) const {
    return static_cast<int>(layer_index % static_cast<size_t>(group().size()));
  }

  // Gives the owner what this rank observed. At the owner what is returned waits for what the
  // others did, on a GPU on the stream of the caller, and puts all together; elsewhere it is empty.
  std::function<LayerOnDevice()> Gather(size_t layer_index, LayerOnDevice own) const;

  // Of all documents, into `all` on the host of rank 0, which nobody else needs. On a GPU they have
  // come when the current stream has.
  void GatherHidden(const at::Tensor& own, const at::Tensor& all) const;
  // From rank 0, which has all of them on its host, those of this rank.
  at::Tensor ScatterHidden(const at::Tensor& all) const;

  // What rank 0 says, once all have said whether they want to stop.
  struct Verdict {
    bool stop = false, commit = false;
  };
  Verdict Agree(size_t layer_index, const Verdict& own) const;

 private:
  const CalibrationInput& input_;
  const HeldOutSplit& split_;
};

}  // namespace oscar
