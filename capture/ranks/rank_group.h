// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The processes (ranks) of one job and their communication by LibTorch's c10d. Short strings
// ("words") go through a store at rank 0 (TCPStore), tensors through NCCL between GPUs and Gloo
// between CPUs. Bytes have their own channel with tags.
//
// Traps: all tensors use one channel, so both sides must make the same calls in the same order,
// from one thread. That thread may only wait for the same thread of other ranks. Other waits can
// deadlock, because on a GPU, a sent tensor occupies the GPU until it is received, and loading a
// new kernel in any thread waits for that.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capture/ranks/rank_place.h"
#include "capture/ranks/rank_watch.h"
#include "linalg/base/error.h"

namespace oscar {

// Another rank can no longer be reached. RankWatch finds out which one and why.
struct LostRank : ResourceError {
  using ResourceError::ResourceError;
};

class RankGroup {
 public:
  // Waits at most `timeout` for all ranks to arrive. Throws ResourceError if one does not arrive,
  // if rank 0 cannot be reached or its port is taken, or if this build does not support ranks.
  // Throws UsageError if the ranks disagree about their number.
  RankGroup(const RankPlace& place, std::chrono::milliseconds timeout);
  // Makes the group of a process that is alone: it sends nothing and keeps its own words.
  RankGroup();
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // Returns the features that this build lacks for ranks on such devices; "" if none.
  static std::string Missing(at::DeviceType device);

  const RankPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size; }

  // From now on, a rank that cannot continue ends the job (RankWatch).
  void StartWatch(std::chrono::milliseconds timeout,
                  std::function<void(const RankWatch::End&)> report);
  RankWatch& watch() const { return *watch_; }

  // Set and Get share words between all ranks. Get waits until the key is set.
  void Set(const std::string& key, std::string_view value) const;
  std::string Get(const std::string& key) const;
  bool Has(const std::string& key) const;

  // Opens the channel for tensors; all ranks must call this before the first tensor. On a GPU, the
  // channel is created while the caller continues.
  void OpenChannel(at::Device device);
  // Sends a tensor, which the caller may drop after the call. On a CPU it has then been sent.
  void Send(const at::Tensor& tensor, int to);
  // Starts to receive into the contiguous `tensor`. The data has arrived when the returned function
  // returns; on a GPU, this holds for later work on the caller's current stream.
  std::function<void()> Receive(const at::Tensor& tensor, int from);
  at::Tensor AllGather(const at::Tensor& own);  // [size, ...]
  // Exchanges rows of a matrix: the first sent[0] rows go to rank 0, and so on; received[r] rows
  // come from rank r.
  at::Tensor AllToAll(const at::Tensor& rows, std::vector<int64_t> sent,
                      std::vector<int64_t> received);

  // Returns the ranks on this machine that have opened exactly the same `files`, in order,
  // including this rank. They can share what one of them reads. All ranks must call this.
  std::vector<int> ReadersOf(const std::string& files) const;
  // Sends each tensor from its owner to the other `readers`. All of them must call this with the
  // same list. On return, the data has arrived; on a GPU, this holds for later work on the caller's
  // current stream.
  struct SharedTensor {
    at::Tensor tensor;  // contiguous
    int owner = 0;
  };
  void Share(const std::vector<SharedTensor>& tensors, const std::vector<int>& readers);

  // These can be called from any thread.
  void SendBytes(std::string_view bytes, int to, int tag);
  std::string ReceiveBytes(int from, int tag);

 private:
  struct Impl;
  void Join(std::chrono::milliseconds timeout);

  RankPlace place_;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<RankWatch> watch_;
};

// Returns the group of a process that is alone.
RankGroup& OneRank();

}  // namespace oscar
