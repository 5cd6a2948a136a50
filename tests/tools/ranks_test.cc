// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The real oscar-calibrate as several ranks over the loopback address: whatever their number, and
// whatever becomes of one of them, the artifact has the bytes of one process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Arguments = std::vector<std::string>;

std::map<std::string, std::string> Files(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "timings.json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), directory)] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

class Ranks : public testing::Test {
 protected:
  // Four layers, so that three ranks commit before the last one.
  static Arguments Bundled() {
    return {TestData("tiny-qwen3/config.json").parent_path(),
            "--tokens",
            "8000",
            "--max-sequence",
            "2500",
            "--error-rows",
            "8",
            "--no-auto",
            "--clip",
            "fixed"};
  }

  // Documents of many lengths, for models without a tokenizer: five pieces that run together.
  Arguments Model(const std::string& name) const {
    const fs::path data = scratch_ / "ids.jsonl";
    std::ofstream file(data);
    for (int document = 0; document < 42; ++document) {
      file << R"({"input_ids": [)";
      for (int i = 0; i < 200 + document % 9 * 7; ++i)
        file << (i > 0 ? ", " : "") << (i * i + 7 * document + i / 9) % 64;
      file << "]}\n";
    }
    return {TestData("families/" + name + "/config.json").parent_path(),
            "--data",
            data,
            "--quant-group-size",
            "0",
            "--sink-tokens",
            "8",
            "--recent-tokens",
            "8",
            "--min-tokens",
            "1",
            "--error-rows",
            "8"};
  }

  ProgramExit Calibrate(Arguments arguments, const Arguments& more, const fs::path& output,
                        const Arguments& environment = {}) const {
    for (const char* argument : {"--device", "cpu", "-o"}) arguments.emplace_back(argument);
    arguments.push_back(output);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(OSCAR_CALIBRATE, arguments, environment);
  }

  void ExpectSameBytes(const Arguments& subject, const std::vector<int>& ranks) const {
    const fs::path one = scratch_ / "one";
    const ProgramExit exit = Calibrate(subject, {}, one);
    ASSERT_EQ(exit.code, 0) << exit.all();
    const auto expected = Files(one);
    ASSERT_EQ(expected.size(), 6U);
    for (const int count : ranks) {
      const fs::path output = scratch_ / ("of" + std::to_string(count));
      const ProgramExit of_ranks = Calibrate(subject, {"--ranks", std::to_string(count)}, output);
      ASSERT_EQ(of_ranks.code, 0) << of_ranks.all();
      for (const auto& [name, bytes] : Files(output))
        EXPECT_TRUE(bytes == expected.at(name)) << count << " ranks: " << name << " differs";
    }
  }

  fs::path scratch_ = TestScratch("ranks");
};

// One rank that the test starts itself, of `size` that meet at `port`.
Arguments Place(int rank, int size, int port) {
  const auto of = [](const char* name, int value) { return name + std::to_string(value); };
  return {of("RANK=", rank),        of("WORLD_SIZE=", size),
          of("LOCAL_RANK=", rank),  of("LOCAL_WORLD_SIZE=", size),
          of("MASTER_PORT=", port), "MASTER_ADDR=127.0.0.1"};
}

// A port nobody listens at, or one where this process does.
class Port {
 public:
  explicit Port(bool taken) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
    if (taken) {
      EXPECT_EQ(listen(fd_, 1), 0);
    } else {
      close(fd_);
      fd_ = -1;
    }
  }
  ~Port() {
    if (fd_ >= 0) close(fd_);
  }
  int number() const { return number_; }

 private:
  int fd_, number_;
};

// Processes that a process has started and not waited for.
std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Faults : public Ranks {
 protected:
  Arguments Subject(const fs::path& output, const Arguments& more = {}) const {
    return SubjectOf(Bundled(), output, more);
  }
  Arguments SubjectOf(Arguments all, const fs::path& output, const Arguments& more = {}) const {
    for (const char* argument : {"--device", "cpu", "--rank-timeout", "10", "-o"})
      all.emplace_back(argument);
    all.push_back(output);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Starts three ranks, does something to one of them once the first layer is done, and waits.
  ProgramExit Disturb(const fs::path& output, int rank, int signal) {
    const pid_t launcher =
        StartProgram(OSCAR_CALIBRATE, Subject(output, {"--ranks", "3"}), {}, scratch_ / "log");
    const fs::path first = output.string() + ".job/state.json";
    for (int i = 0; i < 6000 && !fs::exists(first); ++i) usleep(10000);
    EXPECT_TRUE(fs::exists(first));
    const std::vector<pid_t> ranks = ChildrenOf(launcher);
    EXPECT_EQ(ranks.size(), 3U);
    if (rank < 0) {
      kill(launcher, signal);
    } else if (ranks.size() == 3) {
      kill(ranks[static_cast<size_t>(rank)], signal);
    }
    const auto begin = std::chrono::steady_clock::now();
    const ProgramExit exit = WaitForProgram(launcher, scratch_ / "log");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10 + 5));
    for (const pid_t pid : ranks) EXPECT_NE(kill(pid, 0), 0) << "rank " << pid << " is left";
    return exit;
  }

  void ExpectResumes(const fs::path& output, const Arguments& more) {
    const fs::path whole = scratch_ / "whole";
    if (!fs::exists(whole)) {
      const ProgramExit exit = RunProgram(OSCAR_CALIBRATE, Subject(whole));
      ASSERT_EQ(exit.code, 0) << exit.all();
    }
    const ProgramExit exit = RunProgram(OSCAR_CALIBRATE, Subject(output, more));
    ASSERT_EQ(exit.code, 0) << exit.all();
    EXPECT_TRUE(Contains(exit.err, "resuming")) << exit.err;
    EXPECT_TRUE(Files(output) == Files(whole));
  }
};

TEST_F(Faults, ARankThatIsKilledEndsAllAndTwoGoOn) {
  const ProgramExit exit = Disturb(scratch_ / "out", 2, SIGKILL);
  EXPECT_EQ(exit.code, 4) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "rank 2")) << exit.err;
  ExpectResumes(scratch_ / "out", {"--ranks", "2"});
}
TEST_F(Faults, Rank0ThatIsKilledEndsAllAndOneGoesOn) {
  const ProgramExit exit = Disturb(scratch_ / "out", 0, SIGKILL);
  EXPECT_EQ(exit.code, 4) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "rank 0 was killed by signal 9")) << exit.err;
  ExpectResumes(scratch_ / "out", {});
}
TEST_F(Faults, ARankThatIsStoppedEndsAll) {
  const ProgramExit exit = Disturb(scratch_ / "out", 1, SIGSTOP);
  EXPECT_EQ(exit.code, 4) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "rank 1")) << exit.err;
  ExpectResumes(scratch_ / "out", {"--ranks", "3"});
}
TEST_F(Faults, ARunThatIsAskedToStopCommitsAndGoesOn) {
  const ProgramExit exit = Disturb(scratch_ / "out", -1, SIGTERM);
  EXPECT_EQ(exit.code, 130) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "to resume: ")) << exit.err;
  ExpectResumes(scratch_ / "out", {"--ranks", "4"});
}

TEST_F(Faults, ARankThatSeesOtherDataIsNamed) {
  const Port port(false);
  const Arguments same = SubjectOf(Model("qwen3_moe"), scratch_ / "out");
  Arguments other = same;
  const fs::path changed = scratch_ / "changed.jsonl";
  std::string ids = ReadText(scratch_ / "ids.jsonl");
  ids[ids.find('3')] = '4';
  std::ofstream(changed) << ids;
  other[2] = changed;
  const pid_t first =
      StartProgram(OSCAR_CALIBRATE, same, Place(0, 2, port.number()), scratch_ / "log0");
  const ProgramExit second = RunProgram(OSCAR_CALIBRATE, other, Place(1, 2, port.number()));
  const ProgramExit exit = WaitForProgram(first, scratch_ / "log0");
  EXPECT_EQ(exit.code, 3) << exit.all();
  EXPECT_EQ(second.code, 3) << second.all();
  EXPECT_TRUE(Contains(exit.err, "rank 1 sees something else")) << exit.err;
  EXPECT_EQ(second.err, "");
}

TEST_F(Faults, RanksThatAreCountedDifferentlyAreRefused) {
  const Port port(false);
  const pid_t first = StartProgram(OSCAR_CALIBRATE, Subject(scratch_ / "out"),
                                   Place(0, 2, port.number()), scratch_ / "log0");
  const ProgramExit second =
      RunProgram(OSCAR_CALIBRATE, Subject(scratch_ / "out"), Place(1, 3, port.number()));
  const ProgramExit exit = WaitForProgram(first, scratch_ / "log0");
  EXPECT_EQ(exit.code, 2) << exit.all();
  EXPECT_EQ(second.code, 2) << second.all();
  EXPECT_TRUE(Contains(exit.err, "3 ranks")) << exit.err;
}

TEST_F(Faults, APortThatIsTakenIsSaid) {
  const Port port(true);
  const ProgramExit exit =
      RunProgram(OSCAR_CALIBRATE, Subject(scratch_ / "out"), Place(0, 2, port.number()));
  EXPECT_EQ(exit.code, 4) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "MASTER_PORT")) << exit.err;
}

TEST_F(Faults, ARank0ThatCannotBeReachedIsSaid) {
  const Port port(false);
  const ProgramExit exit =
      RunProgram(OSCAR_CALIBRATE, Subject(scratch_ / "out"), Place(1, 2, port.number()));
  EXPECT_EQ(exit.code, 4) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "cannot reach rank 0")) << exit.err;
}

TEST_F(Faults, RanksThatDoNotComeAreNamed) {
  const Port port(false);
  const ProgramExit exit =
      RunProgram(OSCAR_CALIBRATE, Subject(scratch_ / "out"), Place(0, 3, port.number()));
  EXPECT_EQ(exit.code, 4) << exit.all();
  EXPECT_TRUE(Contains(exit.err, "did not come within 10 s: 1 2")) << exit.err;
}

// At file operations all over a run: a disk that is full, and a process that dies, on rank 0.
TEST_F(Faults, OfTheDiskOfRank0EndAllAndGoOn) {
  for (const int point : {3, 25, 60}) {
    const Port port(false);
    const fs::path output = scratch_ / ("full" + std::to_string(point));
    Arguments environment = Place(0, 2, port.number());
    environment.insert(environment.end(),
                       {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + scratch_.string(),
                        "OSCAR_FAULT_ENOSPC_AT=" + std::to_string(point)});
    const pid_t first =
        StartProgram(OSCAR_CALIBRATE, Subject(output), environment, scratch_ / "log0");
    const ProgramExit second =
        RunProgram(OSCAR_CALIBRATE, Subject(output), Place(1, 2, port.number()));
    const ProgramExit exit = WaitForProgram(first, scratch_ / "log0");
    EXPECT_EQ(exit.code, 4) << exit.all();
    EXPECT_EQ(second.code, 4) << second.all();
    EXPECT_EQ(second.err, "");
    const ProgramExit again = RunProgram(OSCAR_CALIBRATE, Subject(output, {"--ranks", "2"}));
    EXPECT_EQ(again.code, 0) << again.all();
    const fs::path whole = scratch_ / "whole";
    if (!fs::exists(whole)) {
      ASSERT_EQ(RunProgram(OSCAR_CALIBRATE, Subject(whole)).code, 0);
    }
    EXPECT_TRUE(Files(output) == Files(whole));
  }
}

TEST_F(Ranks, OfTheBundledModelMakeTheBytesOfOne) {
  ExpectSameBytes({TestData("tiny-qwen3/config.json").parent_path(), "--tokens", "8000",
                   "--max-sequence", "2500", "--error-rows", "8"},
                  {2, 3, 4});
}
TEST_F(Ranks, OfAMixtureOfExpertsMakeTheBytesOfOne) {
  ExpectSameBytes(Model("qwen3_moe"), {2, 3, 4});
}
TEST_F(Ranks, OfALatentModelMakeTheBytesOfOne) { ExpectSameBytes(Model("deepseek_v3"), {2, 4}); }
TEST_F(Ranks, OfAModelThatSharesItsCacheMakeTheBytesOfOne) {
  ExpectSameBytes(Model("gemma4_text-ple"), {2, 3});
}

}  // namespace
}  // namespace oscar
