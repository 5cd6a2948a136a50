// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ends all ranks of a job when one of them cannot continue. Each rank reports twice a second, on
// its own thread and connection, that it is alive and whether it makes progress. Rank 0 judges
// these reports and announces once what happened to which rank. Then every rank leaves, whatever it
// waits for. Trap: they leave by _exit, so files on disk must be complete at any time, as for a
// killed run.
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
  // Lets all ranks read and write words, from any thread. Throws if the connection is lost.
  struct Words {
    std::function<void(const std::string& key, const std::string& value)> set;
    std::function<std::optional<std::string>(const std::string& key)> find;
    std::vector<pid_t> servers;  // threads of this process that answer other ranks
  };
  struct End {
    ExitCode exit_code = ExitCode::kResources;
    std::string message;  // names rank, machine and its current step
  };
  // `report` prints why a job ends, on rank 0, or elsewhere if rank 0 cannot; then this process
  // exits.
  RankWatch(const RankPlace& place, std::chrono::milliseconds timeout, Words words,
            std::function<void(const End&)> report);
  ~RankWatch();  // this rank is done

  void At(const std::string& where);  // this rank starts a new step, such as "layer 3"
  void Tick();                        // this rank makes progress
  void BeginWait();                   // this rank waits for others and is not judged
  void EndWait();                     // ends BeginWait

  // Ends the job because of a failure in this process: all ranks exit with this code. On rank 0 it
  // returns when they have left, and the caller prints the reason. Elsewhere rank 0 prints it, and
  // this process exits.
  void Fail(ExitCode exit_code, const std::string& cause);
  // Called when another rank cannot be reached: waits until the lost rank is known, then exits.
  [[noreturn]] void AwaitEnd(const std::string& symptom);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace oscar
