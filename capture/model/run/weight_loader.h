// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads weights of a checkpoint to memory, dense and in the compute dtype, from any storage format
// (capture/checkpoint/weight_storage.h). A conversion is exact or rounds once. On the CPU, weights
// come directly from the mapped file. For a GPU, all requested weights are read together, in blocks
// through pinned memory (capture/files/block_reader.h). A separate stream uploads and dequantizes
// them. Mapped pages count as resident until released, so every tensor is released as soon as it
// has been read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/files/block_reader.h"
#include "capture/ranks/rank_group.h"

namespace oscar {

struct WeightTarget {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
};

// Bytes of pinned memory in a loader for a GPU. One block is one read, and all blocks may be in
// flight at once.
inline constexpr int64_t kPinnedBlockBytes = int64_t{4} << 20;
inline constexpr int64_t kPinnedBytes = 32 * kPinnedBlockBytes;

// Not thread-safe, but several threads may use it in turn. The checkpoint must outlive it.
class WeightLoader {
 public:
  // Loaded tensors must be used on the stream that was current on `target.device` during
  // construction. `read` kAuto reads through the page cache.
  WeightLoader(const Checkpoint& checkpoint, const WeightTarget& target,
               ReadMode read = ReadMode::kAuto);
  ~WeightLoader();

  // Loads a dense tensor by its plain name ("m.weight", even if "m.qweight" and others are stored).
  // Do not use it before Finish(), because this call may only request it. Throws InputError naming
  // the stored tensor that is missing or wrong.
  at::Tensor Load(const std::string& name);
  // Loads entries [first, first + count) of the first dimension: rows, or stacked experts. If the
  // tensor is plain or stacked, only that range is read.
  at::Tensor Load(const std::string& name, int64_t first, int64_t count);
  // Loads in another type than the compute dtype.
  at::Tensor LoadAs(const std::string& name, at::ScalarType dtype);
  // From now on, also appends all loaded tensors to `loaded`.
  void RememberIn(std::vector<at::Tensor>* loaded) { loaded_ = loaded; }
  // Whether later loads are roughly in file order. If so, digests may follow up to the last weight
  // read (Checkpoint::turns). The experts of one layer are in order; its other tensors are not.
  void LoadInOrder(bool in_order) { in_order_ = in_order; }
  // From now on, all `readers` (including this rank) request the same tensors. Finish() divides the
  // tensors among them, and each rank reads its own. TakeShared() names the reader of each tensor,
  // from which the others get it (RankGroup::Share). No readers: every rank reads for itself.
  void ShareReading(int rank, const std::vector<int>& readers) {
    rank_ = rank;
    readers_ = readers;
  }
  std::vector<RankGroup::SharedTensor> TakeShared() { return std::exchange(shared_, {}); }
  // Waits for everything requested so far. Throws InputError if a file cannot be read.
  void Finish();

  const Checkpoint& checkpoint() const { return checkpoint_; }
  uint64_t bytes_read() const { return bytes_read_; }  // stored bytes read by this process
  // For a GPU: the bytes of bytes_read() that bypassed the page cache, and those read through it.
  uint64_t direct_bytes() const;
  uint64_t cached_bytes() const;

 private:
  class Uploader;
  struct Asked {
    at::Tensor tensor;
    WeightStorage storage;
  };
  at::Tensor Read(const WeightStorage& storage, at::ScalarType dtype);
  void ReadInto(const WeightStorage& storage, const at::Tensor& tensor);
  void ReadOwnPart();

  const Checkpoint& checkpoint_;
  WeightTarget target_;
  std::vector<at::Tensor>* loaded_ = nullptr;
  int rank_ = 0;
  std::vector<int> readers_;
  std::vector<Asked> asked_;  // requests of all readers
  std::vector<RankGroup::SharedTensor> shared_;
  bool in_order_ = false;
  uint64_t bytes_read_ = 0;
  std::unique_ptr<Uploader> uploader_;  // null on the CPU
};

}  // namespace oscar
