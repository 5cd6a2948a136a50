// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of a checkpoint to memory, dense and in the compute dtype, however they are stored
// (capture/checkpoint/weight_storage.h): a conversion is exact or rounds once. On the CPU straight
// out of the mapped file; to a GPU all that was asked for at once, in blocks through pinned memory
// (capture/files/block_reader.h), on a stream of its own, where stored codes also become values.
// Mapped pages count as resident until released, so every tensor is released as soon as it
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

// Bytes of pinned memory that a loader to a GPU holds: one block is one read, and all of them may
// be under way at once.
inline constexpr int64_t kPinnedBlockBytes = int64_t{4} << 20;
inline constexpr int64_t kPinnedBytes = 32 * kPinnedBlockBytes;

// Not thread-safe; may be used by one thread after another. The checkpoint must outlive it.
class WeightLoader {
 public:
  // What it loads will be used on the stream of `target.device` that is current here. `read` kAuto:
  // through the page cache.
  WeightLoader(const Checkpoint& checkpoint, const WeightTarget& target,
               ReadMode read = ReadMode::kAuto);
  ~WeightLoader();

  // The dense tensor of that name ("m.weight" also where "m.qweight" and others are stored). Not to
  // be used before Finish(). To a GPU: asks for it, no more. InputError naming the stored tensor
  // that is missing or wrong.
  at::Tensor Load(const std::string& name);
  // Entries [first, first + count) of its first dimension: rows, or some of stacked experts. Plain
  // and stacked tensors: reads no more than that.
  at::Tensor Load(const std::string& name, int64_t first, int64_t count);
  // In another type than the compute dtype.
  at::Tensor LoadAs(const std::string& name, at::ScalarType dtype);
  // From here on whatever is loaded is also put there.
  void RememberIn(std::vector<at::Tensor>* loaded) { loaded_ = loaded; }
  // Whether what is loaded from here on stands in the files about in that order, so that digests
  // may be taken up to it (Checkpoint::turns). A layer's tensors do not, one layer's experts do.
  void LoadInOrder(bool in_order) { in_order_ = in_order; }
  // From here on `readers`, of whom this rank is one, ask for the same, and at Finish() each tensor
  // is read by one of them, which TakeShared() names: the others have it from there
  // (RankGroup::Share). None: each reads for itself.
  void ShareReading(int rank, const std::vector<int>& readers) {
    rank_ = rank;
    readers_ = readers;
  }
  std::vector<RankGroup::SharedTensor> TakeShared() { return std::exchange(shared_, {}); }
  // Everything asked for so far is there. InputError where a file cannot be read.
  void Finish();

  const Checkpoint& checkpoint() const { return checkpoint_; }
  uint64_t bytes_read() const { return bytes_read_; }  // by this process, as stored
  // Of them, to a GPU: past the page cache, and through it.
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
  std::vector<Asked> asked_;  // of all readers
  std::vector<RankGroup::SharedTensor> shared_;
  bool in_order_ = false;
  uint64_t bytes_read_ = 0;
  std::unique_ptr<Uploader> uploader_;  // null on the CPU
};

}  // namespace oscar
