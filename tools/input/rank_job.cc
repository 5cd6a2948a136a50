// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/rank_job.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "calib/job/job_directory.h"            // JsonDifferences
#include "capture/checkpoint/model_location.h"  // ProcessEnvironment
#include "capture/model/run/device.h"
#include "tools/cli/command.h"

namespace oscar {
namespace {

constexpr const char* kLauncher = "OSCAR_LAUNCHER";  // set for our own ranks

// Writes a rank's name before every line.
class PrefixedLines : public std::streambuf {
 public:
  explicit PrefixedLines(std::string prefix) : prefix_(std::move(prefix)) {}

 protected:
  int overflow(int c) override {
    if (c == EOF) return c;
    line_ += static_cast<char>(c);
    if (c == '\n') std::cerr << prefix_ << std::exchange(line_, {}) << std::flush;
    return c;
  }

 private:
  std::string prefix_, line_;
};

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// Restricts this process to its rank's GPU, which then becomes its first GPU.
void TakeOwnGpu(const RankPlace& place) {
  const char* const name = "CUDA_VISIBLE_DEVICES";
  const char* const seen = std::getenv(name);
  const auto local = static_cast<size_t>(place.local_rank);
  if (seen == nullptr) {
    setenv(name, std::to_string(local).c_str(), 1);
    return;
  }
  const std::vector<std::string> all = Split(seen, ',');
  if (all.size() >= static_cast<size_t>(place.local_size) && all.size() > 1)
    setenv(name, all[local].c_str(), 1);
}

// Counts the GPUs without starting the driver, which would take time. Returns 0 if
// CUDA_VISIBLE_DEVICES may hide some of them.
int GpusListed() {
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) return 0;
  std::error_code error;
  int gpus = 0;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error))
    gpus += gpu.is_directory(error) ? 1 : 0;
  return gpus;
}

}  // namespace

int RanksAskedFor(const RankOptions& options, const std::string& device) {
  if (options.ranks > 0) return static_cast<int>(options.ranks);
  if (options.gpus.empty()) return 1;
  if (device == "cpu") throw UsageError("--gpus has no effect with --device cpu");
  int asked = 0;
  if (options.gpus != "all") {
    const char* const end = options.gpus.data() + options.gpus.size();
    const auto [at, error] = std::from_chars(options.gpus.data(), end, asked);
    if (error != std::errc() || at != end || asked < 1)
      throw UsageError(fmt::format("--gpus '{}': expected a number, or all", options.gpus));
    if (asked <= GpusListed()) return asked;
  }
  int gpus = 0;
  while (gpus < 64) {
    try {
      (void)ParseDevice(fmt::format("cuda:{}", gpus));
      ++gpus;
    } catch (const Error&) {
      break;
    }
  }
  if (options.gpus == "all") {
    if (gpus == 0) throw ResourceError("--gpus all: LibTorch finds no GPU here");
    return gpus;
  }
  if (asked > gpus)
    throw ResourceError(fmt::format("--gpus {}: LibTorch finds only {} here", asked, gpus));
  return asked;
}

namespace {

// Returns a port that is currently free.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = fd >= 0 && bind(fd, any, size) == 0 && getsockname(fd, any, &size) == 0;
  if (fd >= 0) close(fd);
  if (!bound)
    throw ResourceError(fmt::format("no free port for the ranks: {}", std::strerror(errno)));
  return ntohs(address.sin_port);
}

std::vector<std::string> OwnArguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return Split(all, '\0');
}

pid_t StartRank(int rank, int size, int port, const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw ResourceError(fmt::format("cannot start a rank: {}", std::strerror(errno)));
  if (child > 0) return child;
  setpgid(0, 0);  // the parent passes on the terminal's signals
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const std::vector<std::pair<const char*, std::string>> variables = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(size)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(size)},
      {"MASTER_PORT", std::to_string(port)},
      {"MASTER_ADDR", "127.0.0.1"},
      {kLauncher, "oscar"}};
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

// Ranks normally end by themselves: after a failure within seconds, with rank 0 last. Ranks that
// still run after these delays are killed. The delays start when rank 0 ends, when another rank
// fails, or (with --rank-timeout added) when a signal has killed another rank.
constexpr std::chrono::seconds kBehindRank0{1}, kBehindExit{3}, kBehindSignal{4};

// Runs the ranks and ends this process with their exit code.
[[noreturn]] void RunRanks(int size, const RankOptions& options, const StopSignal& stop) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::string> arguments = OwnArguments();
  const int port = FreePort();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(StartRank(rank, size, port, arguments));
  std::vector<int> codes(ranks.size(), -1);  // -1: still running
  bool told = false, killed = false, lost = false;
  std::optional<Clock::time_point> deadline;
  const auto end_by = [&](Clock::time_point time) {
    deadline = std::min(deadline.value_or(time), time);
  };
  while (std::ranges::count(codes, -1) > 0) {
    if (stop.requested() && !std::exchange(told, true))
      for (size_t r = 0; r < ranks.size(); ++r)
        if (codes[r] == -1) kill(ranks[r], SIGTERM);
    for (size_t r = 0; r < ranks.size(); ++r) {
      int status = 0;
      if (codes[r] != -1 || waitpid(ranks[r], &status, WNOHANG) != ranks[r]) continue;
      codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::kResources);
      if (r == 0 && WIFSIGNALED(status) && !killed) {
        std::cerr << fmt::format("error: rank 0 was killed by signal {} ({})\n", WTERMSIG(status),
                                 strsignal(WTERMSIG(status)));
      }
      if (r == 0) {
        end_by(Clock::now() + kBehindRank0);
      } else if (WIFSIGNALED(status)) {
        lost = true;
        end_by(Clock::now() + kBehindSignal +
               std::chrono::milliseconds(static_cast<int64_t>(1000 * options.rank_timeout)));
      } else if (codes[r] != 0) {
        end_by(Clock::now() + kBehindExit);
      }
    }
    if (deadline && Clock::now() > *deadline && !std::exchange(killed, true)) {
      if (lost && codes[0] == -1)
        std::cerr << "error: a rank was killed, and rank 0 could not stop the others\n";
      for (size_t r = 0; r < ranks.size(); ++r)
        if (codes[r] == -1) kill(ranks[r], SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::cout.flush();
  std::_Exit(codes[0]);  // rank 0 represents all ranks
}

}  // namespace

void AddRankOptions(OptionTable& table, RankOptions* options, bool plans) {
  table.Add(&options->gpus, {.name = "gpus",
                             .help = "number of GPUs of this machine to run on, or all; the number "
                                     "does not change the result; on several machines, start one "
                                     "rank per GPU with torchrun --no-python, srun or mpirun",
                             .scope = OptionScope::kRun,
                             .main = true});
  table.Add(&options->ranks, {.name = "ranks",
                              .help = "number of ranks to start on this machine, whatever GPUs it "
                                      "has (for tests on a CPU); 0: as many as --gpus says",
                              .min = 0,
                              .max = 64,
                              .scope = OptionScope::kRun});
  if (plans) {
    table.Add(&options->nodes, {.name = "nodes",
                                .help = "number of machines to plan the ranks for (with --dry-run)",
                                .min = 1,
                                .max = 64,
                                .scope = OptionScope::kRun});
  }
  table.Add(&options->rank_timeout,
            {.name = "rank_timeout",
             .help = "time after which the run ends if a rank has not joined or makes no progress",
             .unit = "seconds",
             .min = 1,
             .scope = OptionScope::kRun});
  table.NotWith({"ranks"}, "gpus", "both set the number of ranks; give one of them");
}

namespace {

// Makes the C library keep freed memory. Thousands of tensors of tens of megabytes are allocated
// and freed. By default each is returned to the kernel, which clears the same pages again and
// again.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace

Console EnterJob() {
  KeepFreedMemory();
  Console console = ProcessConsole();
  std::optional<RankPlace> place;
  try {
    place = PlaceInJob(ProcessEnvironment());
  } catch (const Error&) {  // reported later, when there is a log
    return console;
  }
  if (!place) return console;
  TakeOwnGpu(*place);
  console.follows = place->launcher == "oscar";
  if (place->rank == 0) return console;
  static std::ofstream nowhere("/dev/null");
  static PrefixedLines lines(fmt::format("[rank {}] ", place->rank));
  static std::ostream prefixed(&lines);
  console.out = &nowhere;
  console.err = &prefixed;
  console.live = console.color = false;
  console.follows = console.only_errors = true;
  return console;
}

std::unique_ptr<RankGroup> JoinRanks(const RankOptions& options, const std::string& device,
                                     CommandContext& context, bool tensors) {
  const std::optional<RankPlace> place = PlaceInJob(ProcessEnvironment());
  if (!place) {
    const int count = RanksAskedFor(options, device);
    if (count > 1) RunRanks(count, options, context.stop);
    return std::make_unique<RankGroup>();
  }
  if ((options.ranks > 0 || !options.gpus.empty()) && place->launcher != "oscar") {
    throw UsageError(fmt::format("{} has started {} ranks; leave out --gpus and --ranks",
                                 place->launcher, place->size));
  }
  const at::Device on = ParseDevice(device);
  if (const std::string missing = RankGroup::Missing(on.type()); !missing.empty()) {
    throw ResourceError(
        fmt::format("{} ranks: this build lacks {}; run a single rank", place->size, missing));
  }
  const std::chrono::milliseconds timeout(static_cast<int64_t>(1000 * options.rank_timeout));
  auto group = std::make_unique<RankGroup>(*place, timeout);
  group->StartWatch(timeout, [&log = context.log](const RankWatch::End& end) {
    log.Error("failed", end.message, {{"exit_code", static_cast<int>(end.exit_code)}});
  });
  try {
    if (tensors) group->OpenChannel(on);
  } catch (const std::exception&) {
    EndJob(*group);
    throw;
  }
  return group;
}

void EndJob(RankGroup& group) {
  if (group.size() == 1) return;
  try {
    throw;
  } catch (const Interrupted& error) {  // other ranks stop too, or wait for rank 0
    if (group.rank() == 0) group.watch().Fail(error.exit_code(), error.what());
  } catch (const LostRank& error) {
    group.watch().AwaitEnd(error.what());
  } catch (const std::exception& error) {
    const Failure failure = DescribeFailure(error);
    group.watch().Fail(failure.exit_code, failure.message);
  }
}

void CheckSameOnAllRanks(const RankGroup& group, const Json& own) {
  const auto key = [](int rank) { return fmt::format("sees/{}", rank); };
  group.Set(key(group.rank()), CanonicalJson(own));
  if (group.rank() != 0) {
    const Json first = Json::parse(group.Get(key(0)));
    if (first == own) return;
    (void)group.Get("never");  // waits until rank 0 sees the difference and ends the job
  }
  for (int rank = 1; rank < group.size(); ++rank) {
    const Json other = Json::parse(group.Get(key(rank)));
    std::string list;
    for (const std::string& line : JsonDifferences(own, other)) list += "\n  " + line;
    if (list.empty()) continue;
    throw InputError(
        fmt::format("rank {} has other options, files or data than rank 0 ('was' is rank 0's "
                    "value, 'now' is rank {}'s):{}",
                    rank, rank, list));
  }
}

uint64_t LeastOfRanks(const RankGroup& group, const std::string& name, uint64_t own) {
  group.Set(fmt::format("{}/{}", name, group.rank()), std::to_string(own));
  for (int rank = 0; rank < group.size(); ++rank)
    own = std::min<uint64_t>(own, std::stoull(group.Get(fmt::format("{}/{}", name, rank))));
  return own;
}

std::vector<int> FirstReaders(const RankGroup& group, const std::string& opened) {
  const auto key = [](int rank) { return fmt::format("opened/{}", rank); };
  group.Set(key(group.rank()), opened);
  std::set<std::string> known;
  std::vector<int> first;
  for (int rank = 0; rank < group.size(); ++rank)
    if (known.insert(group.Get(key(rank))).second) first.push_back(rank);
  return first;
}

bool AgreeToStop(const RankGroup& group, size_t layer_index, bool own) {
  const std::string key = fmt::format("stops/{}", layer_index);
  if (group.rank() != 0) {
    if (own) group.Set("stop", "1");
    return group.Get(key) == "1";
  }
  const bool stop = own || group.Has("stop");
  group.Set(key, stop ? "1" : "0");
  return stop;
}

}  // namespace oscar
