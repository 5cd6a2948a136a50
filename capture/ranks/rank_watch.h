// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ends all ranks of a job when one of them cannot go on. Each says twice a second, by a thread and
// a connection of its own, that it lives and whether it gets on; rank 0 judges, says once for all
// what happened to whom, and everybody leaves, out of whatever it waits in. Trap: they leave by
// _exit: what is on disk must be whole at any time, as it must be for a killed run.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/ranks/rank_place.h"
#include "linalg/error.h"

namespace oscar {

class RankWatch {
 public:
  // What all ranks can read and write, from any thread; throws where that is lost.
  struct Words {
    std::function<void(const std::string& key, const std::string& value)> set;
    std::function<std::optional<std::string>(const std::string& key)> find;
    std::vector<pid_t> servers;  // threads of this process that answer the others
  };
  struct End {
    ExitCode exit_code = ExitCode::kResources;
    std::string message;  // names rank, machine and what it was at
  };
  // `report` says why a job ends, at rank 0, or where rank 0 cannot; then this process leaves.
  RankWatch(const RankPlace& place, std::chrono::milliseconds timeout, Words words,
            std::function<void(const End&)> report);
  ~RankWatch();  // this rank is done

  void At(const std::string& where);  // it is at something new, such as "layer 3"
  void Tick();                        // it gets on
  void BeginWait();                   // for others, which is no fault of its own,
  void EndWait();                     // until here

  // Ends the job for what happened here: all leave with that exit code. On rank 0 it returns when
  // they have, and the caller says why; elsewhere rank 0 says it, and this process leaves.
  void Fail(ExitCode exit_code, const std::string& cause);
  // Another rank cannot be reached: stays until it is known which, and leaves.
  [[noreturn]] void AwaitEnd(const std::string& symptom);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace oscar
