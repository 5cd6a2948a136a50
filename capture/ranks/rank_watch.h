// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ends all ranks of a job when one of them cannot continue. Each rank reports four times a second,
// on its own thread and connection, that it is alive and whether it makes progress. Rank 0 checks
// these reports and announces once what happened to which rank. Then every rank exits, whatever it
// is waiting for. Trap: ranks exit by _exit, so files on disk must be valid at any time, as if the
// run were killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/ranks/rank_place.h"
#include "linalg/base/error.h"

namespace oscar {

class RankWatch {
 public:
  // Access to the words that all ranks share (rank_group.h), from any thread. Its functions throw
  // if the connection is lost.
  struct Words {
    std::function<void(const std::string& key, const std::string& value)> set;
    std::function<std::optional<std::string>(const std::string& key)> find;
    std::vector<pid_t> servers;  // threads of this process that answer other ranks
  };
  struct End {
    ExitCode exit_code = ExitCode::kResources;
    std::string message;  // names the rank, its machine and its current step
  };
  // `report` prints why the job ends, before this process exits. It is called on rank 0, or on
  // another rank if rank 0 cannot report.
  RankWatch(const RankPlace& place, std::chrono::milliseconds timeout, Words words,
            std::function<void(const End&)> report);
  ~RankWatch();  // reports that this rank is done

  void At(const std::string& where);  // reports that this rank starts a step, such as "layer 3"
  void Tick();                        // reports that this rank has made progress
  void BeginWait();                   // exempts this rank, which waits for others, from timeouts
  void EndWait();                     // ends the exemption

  // Ends the job because of a failure in this process: all ranks exit with this code. On rank 0,
  // returns when the others have left, and the caller prints the reason. On other ranks, this
  // process exits and rank 0 prints the reason.
  void Fail(ExitCode exit_code, const std::string& cause);
  // Called when another rank cannot be reached: waits until the lost rank is known, then exits.
  [[noreturn]] void AwaitEnd(const std::string& symptom);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace oscar
