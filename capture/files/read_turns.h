// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lets a computation and a background reader (which computes digests of the same files) take turns
// at a disk. Reads that the computation waits for go first. The background uses the gaps, so that
// it does not take half of the disk's bandwidth. While the computation reads without a pause, the
// background waits. If both read through a page cache that cannot hold all files, the background
// stays close to the computation, so that the disk reads every byte only once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace oscar {

class ReadTurns {
 public:
  // While one of these objects exists, the computation is waiting for reads.
  class Urgent {
   public:
    explicit Urgent(ReadTurns& turns);
    ~Urgent();
    Urgent(const Urgent&) = delete;
    Urgent& operator=(const Urgent&) = delete;

   private:
    ReadTurns& turns_;
  };

  // Calls Close() at the end of a scope. Declared after the background reader's future, it stops
  // the reader before the future's destructor waits for it, also if an exception is thrown.
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
  // Called when the computation no longer needs bytes before this share of all bytes; 1: it needs
  // no more bytes.
  void Reach(double share);

  // Called by the background before each read of about 1 MiB, with its position as a share of all
  // bytes. Returns once no urgent read has been in progress for a moment and the lead is within its
  // limit (SetLead). Throws Interrupted after Close().
  void WaitForTurn(double share = 0);
  // Ends the background reads, because they are no longer needed.
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
