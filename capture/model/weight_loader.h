// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a checkpoint to memory, in the compute dtype: a conversion is exact or rounds once. On
// the CPU straight out of the mapped file; to a GPU in pieces through two pieces of pinned memory,
// on a stream of its own. Trap: mapped pages count as resident until released, so every tensor is
// released as soon as it has been read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "capture/checkpoint/checkpoint.h"

namespace oscar {

struct WeightTarget {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
};

// Bytes of pinned memory that a loader to a GPU holds.
inline constexpr int64_t kPinnedPieceBytes = int64_t{32} << 20;
inline constexpr int64_t kPinnedBytes = 2 * kPinnedPieceBytes;

// Not thread-safe; may be used by one thread after another. The checkpoint must outlive it.
class WeightLoader {
 public:
  // What it loads will be used on the stream of `target.device` that is current here.
  WeightLoader(const Checkpoint& checkpoint, const WeightTarget& target);
  ~WeightLoader();

  // Not to be used before Finish().
  at::Tensor Load(const std::string& name);
  at::Tensor LoadRows(const std::string& name, int64_t begin,
                      int64_t end);  // of a matrix, [begin, end)
  void Finish();                     // waits until everything loaded so far is there

 private:
  class Uploader;

  const Checkpoint& checkpoint_;
  WeightTarget target_;
  std::unique_ptr<Uploader> uploader_;  // null on the CPU
};

}  // namespace oscar
