// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns at a disk: reads that a computation waits for go first, and a reader in the background
// (digests of the same files) takes the time between them, so that both together do not slow the
// computation to half of the disk's rate. Nothing is shared out. While the computation reads
// without a pause, the background waits for it to end. Where both read through the page cache,
// which cannot hold all of it, the background stays close to the computation, so that the disk
// gives every byte once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace oscar {

class ReadTurns {
 public:
  // Reads that are waited for are under way while one of these lives.
  class Urgent {
   public:
    explicit Urgent(ReadTurns& turns);
    ~Urgent();
    Urgent(const Urgent&) = delete;
    Urgent& operator=(const Urgent&) = delete;

   private:
    ReadTurns& turns_;
  };

  // Closes the turns at the end of a scope. Declared behind the future of what reads in the
  // background, it keeps an exception from waiting for that.
  class Closing {
   public:
    explicit Closing(ReadTurns& turns) : turns_(turns) {}
    ~Closing() { turns_.Close(); }
    Closing(const Closing&) = delete;
    Closing& operator=(const Closing&) = delete;

   private:
    ReadTurns& turns_;
  };

  // How far ahead of the computation the background may read, as a share of all bytes; 1, which is
  // any, until somebody says so.
  void SetLead(double share);
  // The computation needs nothing before that share of all bytes any more; 1: nothing at all.
  void Reach(double share);

  // For the background, before each read of about a MiB, at that share of all bytes: returns once
  // no urgent read has been under way for a moment, and the computation is near. Throws Interrupted
  // after Close().
  void WaitForTurn(double share = 0);
  // Nobody wants what the background reads any more.
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
