// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The processes (ranks) of one job and what they say to each other, by LibTorch's c10d: words
// through a store that stands at rank 0 (TCPStore), tensors by NCCL between GPUs and Gloo between
// CPUs. Trap: tensors go by one channel; both sides must make the same calls in the same order,
// from one thread. Bytes have a channel of their own, where tags tell them apart. Trap: that
// thread must wait for no other rank's threads but their same one. On a GPU what it has sent runs
// until it is received, and a kernel that is loaded for the first time, by any thread, waits for
// it.
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
#include "linalg/error.h"

namespace oscar {

// Another rank cannot be reached any more. Who and why is for RankWatch to find out.
struct LostRank : ResourceError {
  using ResourceError::ResourceError;
};

class RankGroup {
 public:
  // Waits for all ranks to come, at most `timeout`. ResourceError where one does not, where rank 0
  // cannot be reached or its port is taken, or where this build cannot.
  RankGroup(const RankPlace& place, std::chrono::milliseconds timeout);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // What this build lacks for ranks on such devices; "": nothing.
  static std::string Missing(at::DeviceType device);

  const RankPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size; }

  // From here on ranks that cannot go on end the job (RankWatch).
  void StartWatch(std::chrono::milliseconds timeout,
                  std::function<void(const RankWatch::End&)> report);
  RankWatch& watch() const { return *watch_; }

  // Words that all can read. Get waits until somebody has set it.
  void Set(const std::string& key, std::string_view value) const;
  std::string Get(const std::string& key) const;
  bool Has(const std::string& key) const;

  // Before the first tensor, on all ranks. On a GPU it is made beside what the caller does next.
  void OpenChannel(at::Device device);
  // The tensor may be dropped. On a CPU it has been sent.
  void Send(const at::Tensor& tensor, int to);
  // Into `tensor`, contiguous; it has come when what is returned has been called, on a GPU for the
  // current stream of the caller.
  std::function<void()> Receive(const at::Tensor& tensor, int from);
  at::Tensor AllGather(const at::Tensor& own);  // [size, ...]
  // Rows of a matrix: the first sent[0] go to rank 0, and so on; received[r] come from rank r.
  at::Tensor AllToAll(const at::Tensor& rows, std::vector<int64_t> sent,
                      std::vector<int64_t> received);

  // Ranks of this machine that have opened the very same `files`, in order, with this one: what one
  // of them reads need not be read by the others. All ranks ask.
  std::vector<int> ReadersOf(const std::string& files) const;
  // From who has it to all others of `readers`, who call this with the same list; what comes has
  // come as Receive says.
  struct SharedTensor {
    at::Tensor tensor;  // contiguous
    int owner = 0;
  };
  void Share(const std::vector<SharedTensor>& tensors, const std::vector<int>& readers);

  // From any thread.
  void SendBytes(std::string_view bytes, int to, int tag);
  std::string ReceiveBytes(int from, int tag);

 private:
  struct Impl;
  void Join(std::chrono::milliseconds timeout);

  RankPlace place_;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<RankWatch> watch_;
};

}  // namespace oscar
