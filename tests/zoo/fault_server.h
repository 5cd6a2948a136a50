// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs fault_server.py, a web server that misbehaves, for the duration of a test.
#pragma once

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace oscar {

class FaultServer {
 public:
  FaultServer(const std::filesystem::path& folder, const std::filesystem::path& scratch,
              ProgramStrings tls = {})
      : log_(scratch / "requests") {
    ProgramStrings arguments = {OSCAR_FAULT_SERVER, folder.string(), log_.string()};
    arguments.insert(arguments.end(), tls.begin(), tls.end());
    pid_ = StartProgram(OSCAR_PYTHON, arguments, {}, scratch / "server");
    for (int i = 0; i < 200 && port_.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::istringstream(ReadText(scratch / "server.out")) >> port_;
    }
  }
  ~FaultServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  std::string Url(const std::string& fault, const std::string& host = "http://127.0.0.1") const {
    return host + ":" + port_ + "/" + fault;
  }
  std::vector<std::string> Requests() const {
    std::vector<std::string> lines;
    std::istringstream text(ReadText(log_));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  void Forget() const { std::filesystem::remove(log_); }

 private:
  std::filesystem::path log_;
  pid_t pid_ = -1;
  std::string port_;
};

}  // namespace oscar
