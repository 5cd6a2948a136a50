// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns at a disk. Reads that a computation waits for go first, and a reader in the background
// (digests of the same files) uses the time between them, so that the two together do not slow the
// computation to half of the disk's rate. Bandwidth is not shared: while the computation reads
// without a pause, the background waits for it to end. If both read through a page cache that
// cannot hold everything, the background stays close to the computation, so that the disk delivers
// every byte once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace oscar {

class ReadTurns {
 public:
  // While one of these exists, reads that the computation waits for are in progress.
  class Urgent {
   public:
    explicit Urgent(ReadTurns& turns);
    ~Urgent();
    Urgent(const Urgent&) = delete;
    Urgent& operator=(const Urgent&) = delete;

   private:
    ReadTurns& turns_;
  };

  // Closes the turns at the end of a scope. Declared after the future of the background reader, it
  // keeps an exception from waiting for that future.
  class Closing {
   public:
    explicit Closing(ReadTurns& turns) : turns_(turns) {}
    ~Closing() { turns_.Close(); }
    Closing(const Closing&) = delete;
    Closing& operator=(const Closing&) = delete;

   private:
    ReadTurns& turns_;
  };

  // Limits how far ahead of the computation the background may read, as a share of all bytes. The
  // initial 1 means no limit.
  void SetLead(double share);
  // The computation no longer needs anything before that share of all bytes; 1: it needs nothing at
  // all.
  void Reach(double share);

  // Called by the background before each read of about a MiB, at that share of all bytes. Returns
  // once no urgent read has been in progress for a moment and the computation is near. Throws
  // Interrupted after Close().
  void WaitForTurn(double share = 0);
  // Ends the background reads, because nobody needs them any more.
  void Close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int urgent_ = 0;
  bool closed_ = false;
  double lead_ = 1, reached_ = 0;
  std::chrono::steady_clock::time_point last_urgent_ = {};
};

}  // namespace oscar
