// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate as several ranks over the loopback address. Whatever their number, and
// whatever happens to one of them, the artifact has the bytes of a single-process run.
// Longer than 400 lines because one fixture runs every fault at the same places.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/tools/artifact_bytes.h"
#include "tests/tools/small_runs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Arguments = std::vector<std::string>;

class Ranks : public testing::Test {
 protected:
  static Arguments Bundled() { return BundledRun(); }
  Arguments Model(const std::string& name, int documents = 42) const {
    return FamilyRun(name, scratch_, documents);
  }

  ProgramExit Calibrate(Arguments arguments, const Arguments& more, const fs::path& output,
                        const Arguments& environment = {}) const {
    for (const char* argument : {"--device", "cpu", "-o"}) arguments.emplace_back(argument);
    arguments.push_back(output);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(OSCAR_CALIBRATE, arguments, environment);
  }

  fs::path scratch_ = TestScratch("ranks");
};

// Returns the environment of one of `size` ranks that the test starts itself; they meet at `port`.
Arguments PlaceOf(int rank, int size, int port) {
  const auto of = [](const char* name, int value) { return name + std::to_string(value); };
  return {of("RANK=", rank),        of("WORLD_SIZE=", size),
          of("LOCAL_RANK=", rank),  of("LOCAL_WORLD_SIZE=", size),
          of("MASTER_PORT=", port), "MASTER_ADDR=127.0.0.1"};
}

// A port that nobody listens on or, if `taken`, that this process listens on.
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

// Returns the child processes of `parent` that it has not waited for.
std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

// Returns all processes whose command line contains `text`.
std::vector<pid_t> ProcessesOf(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.find(text) != line.npos) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

// The place of a fault (write_faults.c): one rank, when it writes or opens a certain file.
struct Place {
  const char* when;
  int rank;
  const char* file;
  bool opens = false;
};
constexpr Place kBefore0 = {"before the first layer", 0, "exaone4/model.safetensors", true},
                kBefore1 = {"before the first layer", 1, "exaone4/model.safetensors", true},
                kLayer0 = {"within a layer", 0, ".job/layer_00000"},
                kLayer1 = {"within a layer", 1, "oscar-layer-"},
                kCommit = {"at commit", 0, ".job/hidden_00002"},
                kPublish = {"at publish", 0, "manifest.json"};

// Runs a model of four layers, which takes a second or two and must end within seconds of a fault.
class Faults : public Ranks {
 protected:
  // More than a rank needs to start on a machine that is busy with other tests.
  static constexpr std::chrono::seconds kTimeout{12};
  // A run of two ranks, one of which is struck at `place`.
  struct Struck {
    Place place;
    fs::path folder;
    pid_t launcher;

    fs::path output() const { return folder / "out"; }
    fs::path mark() const { return folder / "struck"; }
  };

  void SetUp() override {
    model_ = Model("exaone4", 24);
    model_.insert(model_.end(), {"--no-auto", "--clip", "fixed"});
  }

  static Arguments RunOf(Arguments all, const fs::path& output, const Arguments& more = {}) {
    all.insert(all.end(), {"--device", "cpu", "--rank-timeout", std::to_string(kTimeout.count()),
                           "-o", output});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Arguments At(const Place& place, const Arguments& what) {
    Arguments environment = {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=/",
                             std::string("OSCAR_FAULT_MATCH=") + place.file,
                             "OSCAR_FAULT_RANK=" + std::to_string(place.rank)};
    if (place.opens) environment.emplace_back("OSCAR_FAULT_OPENS=1");
    environment.insert(environment.end(), what.begin(), what.end());
    return environment;
  }

  Struck Start(const Place& place, Arguments what) {
    Struck run{place, scratch_ / std::to_string(runs_++), 0};
    fs::create_directory(run.folder);
    what.push_back("OSCAR_FAULT_STRUCK=" + run.mark().string());
    run.launcher = StartProgram(OSCAR_CALIBRATE, RunOf(model_, run.output(), {"--ranks", "2"}),
                                At(place, what), run.folder / "log");
    return run;
  }
  static void AwaitStrike(const Struck& run) {
    while (!fs::exists(run.mark())) usleep(10000);
  }
  // Waits for the launcher and returns its exit. All ranks must have ended in time.
  static ProgramExit End(const Struck& run) {
    ProgramExit exit = WaitForProgram(run.launcher, run.folder / "log");
    EXPECT_TRUE(fs::exists(run.mark())) << exit.all();
    if (fs::exists(run.mark())) {
      EXPECT_LT(fs::file_time_type::clock::now() - fs::last_write_time(run.mark()),
                kTimeout + std::chrono::seconds(5));
    }
    for (const pid_t pid : ProcessesOf(run.output()))
      ADD_FAILURE() << "process " << pid << " is left";
    return exit;
  }

  void ExpectWhole(const ProgramExit& exit, const fs::path& output) {
    if (whole_.empty()) {
      ASSERT_TRUE(Exits(Calibrate(model_, {}, scratch_ / "whole"), 0));
      whole_ = ArtifactBytes(scratch_ / "whole");
    }
    ASSERT_TRUE(Exits(exit, 0));
    EXPECT_TRUE(ArtifactBytes(output) == whole_);
    EXPECT_FALSE(fs::exists(output.string() + ".job"));
  }
  void ExpectGoesOn(const fs::path& output, int ranks) {
    Arguments more;
    if (ranks > 1) more = {"--ranks", std::to_string(ranks)};
    ExpectWhole(Calibrate(model_, more, output), output);
  }
  // Starts a run for each place, `at_once` in parallel. Each must end with one error, and a run
  // with any number of ranks must resume it. `says`: the error if rank 0 or rank 1 is struck.
  void ExpectEnd(const std::vector<Place>& places, const Arguments& what,
                 const std::array<std::string, 2>& says, size_t at_once = 6) {
    std::vector<Struck> runs(places.size());
    std::vector<ProgramExit> exits;
    for (size_t first = 0; first < places.size(); first += at_once) {
      const size_t last = std::min(places.size(), first + at_once);
      std::vector<std::future<ProgramExit>> ends;  // each is timed by itself
      for (size_t i = first; i < last; ++i) runs[i] = Start(places[i], what);
      for (size_t i = first; i < last; ++i)
        ends.push_back(std::async(std::launch::async, [&run = runs[i]] { return End(run); }));
      for (std::future<ProgramExit>& end : ends) exits.push_back(end.get());
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      const Place& place = runs[i].place;
      SCOPED_TRACE(std::string(place.when) + ", rank " + std::to_string(place.rank));
      EXPECT_EQ(exits[i].code, 4) << exits[i].all();
      const std::string& err = exits[i].err;
      EXPECT_TRUE(Says(err, says.at(static_cast<size_t>(place.rank))));
      const size_t error = err.find("error: ");
      EXPECT_TRUE(error != err.npos && err.find("error: ", error + 1) == err.npos) << err;
      ExpectGoesOn(runs[i].output(), 1 + static_cast<int>(i % 3));
    }
  }

  Arguments model_;
  std::map<std::string, std::string> whole_;
  int runs_ = 0;
};

TEST_F(Faults, ARankThatIsKilledEndsAll) {
  ExpectEnd({kBefore0, kBefore1, kLayer0, kLayer1, kCommit, kPublish}, {"OSCAR_FAULT_KILL_AT=1"},
            {"rank 0 was killed by signal 9", "rank 1 of 2 on "});
}
TEST_F(Faults, ARankThatIsStoppedEndsAll) {
  ExpectEnd({kBefore0, kBefore1, kLayer0, kLayer1, kCommit, kPublish},
            {"OSCAR_FAULT_KILL_AT=1", "OSCAR_FAULT_SIGNAL=" + std::to_string(SIGSTOP)},
            {"has not answered for 12 s", "has not responded for"});
}
TEST_F(Faults, ARankThatHangsEndsAll) {
  ExpectEnd({kBefore0, kBefore1, kLayer0, kLayer1, kCommit, kPublish},
            {"OSCAR_FAULT_KILL_AT=1", "OSCAR_FAULT_SLEEP=100"},
            {"rank 0 of 2 on ", "has made no progress for 12 s"},
            // More runs at once could hide that the struck rank computes nothing.
            /*at_once=*/2);
}
TEST_F(Faults, OfTheDiskEndAll) {
  const Place job = {"before the first layer", 0, ".job/fingerprint.json"};
  ExpectEnd({job, kLayer0, kLayer1, kCommit, kPublish}, {"OSCAR_FAULT_ENOSPC_AT=1"},
            {"No space left", "rank 1 of 2 on "});
}
TEST_F(Faults, ARankThatIsLateIsAwaited) {
  std::vector<Struck> runs;
  for (const Place& place : {kBefore1, kLayer0, kLayer1, kCommit, kPublish})
    runs.push_back(Start(place, {"OSCAR_FAULT_KILL_AT=1", "OSCAR_FAULT_SLEEP=2"}));
  for (const Struck& run : runs) {
    SCOPED_TRACE(run.place.when);
    ExpectWhole(WaitForProgram(run.launcher, run.folder / "log"), run.output());
  }
}

TEST_F(Faults, ARunThatIsAskedToStopCommitsAndGoesOn) {
  for (const Place& place : {kBefore0, kLayer0, kCommit}) {
    SCOPED_TRACE(place.when);
    const Struck run = Start(place, {"OSCAR_FAULT_KILL_AT=1", "OSCAR_FAULT_SLEEP=2"});
    AwaitStrike(run);
    kill(run.launcher, SIGTERM);
    EXPECT_TRUE(Exits(WaitForProgram(run.launcher, run.folder / "log"), 130, "to resume: "));
    ExpectGoesOn(run.output(), 3);
  }
}

// Rank 1 only waits for rank 0 to publish, so nothing is lost with it.
TEST_F(Faults, ARankThatHasNothingLeftToDoIsNotMissed) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const Struck run = Start(kPublish, {"OSCAR_FAULT_KILL_AT=1", "OSCAR_FAULT_SLEEP=2"});
    AwaitStrike(run);
    const std::vector<pid_t> ranks = ChildrenOf(run.launcher);
    ASSERT_EQ(ranks.size(), 2U);
    kill(ranks[1], signal);
    ExpectWhole(End(run), run.output());
  }
}

TEST_F(Faults, AJobThatWasPublishedIsClearedUp) {
  const fs::path count = scratch_ / "count", output = scratch_ / "out";
  const Place job = {"when its job is removed", 0, "out.job"};
  ExpectWhole(
      RunProgram(OSCAR_CALIBRATE, RunOf(model_, output, {"--ranks", "2"}),
                 At(job, {"OSCAR_FAULT_KILL_AT=100000", "OSCAR_FAULT_COUNT=" + count.string()})),
      output);
  const int last = std::stoi(ReadText(count)) - 1;
  const Struck run = Start(job, {"OSCAR_FAULT_KILL_AT=" + std::to_string(last)});
  EXPECT_TRUE(Exits(End(run), 4));
  EXPECT_TRUE(ArtifactBytes(run.output()) == ArtifactBytes(output));
  // The rest of the job may no longer show that the job was finished.
  const ProgramExit again =
      RunProgram(OSCAR_CALIBRATE, RunOf(model_, run.output(), {"--ranks", "2"}));
  EXPECT_TRUE(again.code == 0 || Says(again.err, "exists already")) << again.all();
  EXPECT_TRUE(ArtifactBytes(run.output()) == ArtifactBytes(output));
}

// Ranks divide the arms among them. Together they measure what a single process measures.
TEST_F(Ranks, AValidationBySeveralHasTheReportOfOne) {
  const fs::path artifact = scratch_ / "artifact";
  ASSERT_TRUE(Exits(Calibrate(Bundled(), {}, artifact), 0));
  const auto report = [&](const Arguments& more) {
    EXPECT_TRUE(Exits(
        RunProgram(OSCAR_VALIDATE,
                   Words("% --model % --device cpu --sequences 2 --length 700 --needle-samples 1 "
                         "--needle-tasks "
                         "single_1 --needle-lengths 400 --arms naive hadamard oscar_per_head -o %",
                         {artifact, Bundled().front(),
                          scratch_ / ("report" + std::to_string(more.size()))}) +
                       more),
        0));
    return ReadText(scratch_ / ("report" + std::to_string(more.size())) / "report.json");
  };
  const std::string one = report({});
  ASSERT_FALSE(one.empty());
  EXPECT_TRUE(report({"--ranks", "2"}) == one);
  EXPECT_TRUE(Exits(RunProgram(OSCAR_VALIDATE, {artifact, "--model", Bundled().front(), "--device",
                                                "cpu", "--local-only", "--arms", "naive", "--ranks",
                                                "2", "-o", scratch_ / "none"}),
                    2, "1 configurations besides the exact model"));
}

TEST_F(Ranks, ADeviceThatIsNotThereIsRefusedOnceBeforeTextIsRead) {
  const ProgramExit exit = RunProgram(
      OSCAR_CALIBRATE, {TestData("tiny-qwen3/config.json").parent_path().string(), "--device",
                        "cuda:99", "--ranks", "2", "-o", (scratch_ / "out").string()});
  EXPECT_TRUE(Exits(exit, 4));
  const size_t first = exit.err.find("error: device 'cuda:99' does not exist");
  EXPECT_NE(first, std::string::npos) << exit.err;
  EXPECT_EQ(exit.err.find("error:", first + 1), std::string::npos) << exit.err;
  EXPECT_EQ(exit.err.find("data:"), std::string::npos) << exit.err;
}

// Each rank writes a dump of its own sequences, and a main file joins these dumps.
TEST_F(Ranks, ACaptureBySeveralIsReadAsThatOfOne) {
  std::string rotations;
  for (const char* ranks : {"1", "2"}) {
    const fs::path dump = scratch_ / (std::string("dump") + ranks + ".h5"),
                   artifact = scratch_ / (std::string("fitted") + ranks);
    Arguments arguments =
        Words("% --tokens 4000 --max-sequence 1500 --scores none -o %", {Bundled().front(), dump});
    for (const char* argument : {"--device", "cpu", "--ranks", ranks})
      arguments.emplace_back(argument);
    ASSERT_TRUE(Exits(RunProgram(OSCAR_CAPTURE, arguments), 0));
    EXPECT_EQ(fs::exists(scratch_ / "dump2.rank1.h5"), std::string(ranks) == "2");
    ASSERT_TRUE(Exits(RunProgram(OSCAR_CALIBRATE,
                                 {"--from", dump, "--device", "cpu", "--no-auto", "--clip", "fixed",
                                  "--error-rows", "8", "--min-tokens", "1", "-o", artifact}),
                      0));
    const std::string bytes = ReadText(artifact / "rotations.safetensors");
    EXPECT_TRUE(rotations.empty() || bytes == rotations);
    rotations = bytes;
  }
}

// Two ranks that are started separately and differ in something.
class Apart : public Faults {
 protected:
  struct TwoExits {
    ProgramExit rank0, rank1;
  };
  Arguments Run() const { return RunOf(model_, scratch_ / "out"); }
  TwoExits RunApart(const Arguments& of0, const Arguments& of1, int size_of1 = 2) const {
    const Port port(false);
    const pid_t first =
        StartProgram(OSCAR_CALIBRATE, of0, PlaceOf(0, 2, port.number()), scratch_ / "log0");
    ProgramExit second = RunProgram(OSCAR_CALIBRATE, of1, PlaceOf(1, size_of1, port.number()));
    return {WaitForProgram(first, scratch_ / "log0"), std::move(second)};
  }
};

TEST_F(Apart, ARankThatSeesOtherDataIsNamed) {
  Arguments other = model_;
  const fs::path changed = scratch_ / "changed.jsonl";
  std::string ids = ReadText(scratch_ / "ids.jsonl");
  ids[ids.find('3')] = '4';
  std::ofstream(changed) << ids;
  other[2] = changed;
  const TwoExits exits = RunApart(Run(), RunOf(other, scratch_ / "out"));
  EXPECT_TRUE(Exits(exits.rank0, 3));
  EXPECT_TRUE(Exits(exits.rank1, 3));
  EXPECT_TRUE(Says(exits.rank0.err, "rank 1 has other options, files or data"));
  EXPECT_EQ(exits.rank1.err, "");
}

// Copies the bundled model and changes a byte outside the sampled parts of its weights.
fs::path Damaged(const fs::path& scratch, int64_t at) {
  const fs::path copy = scratch / "copy" / "tiny-qwen3";
  fs::create_directories(copy.parent_path());
  fs::copy(TestData("tiny-qwen3/config.json").parent_path(), copy, fs::copy_options::recursive);
  std::fstream file(copy / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(byte);
  return copy;
}

TEST_F(Apart, ARankWithDamagedWeightsIsNamed) {
  Arguments damaged = Bundled();
  damaged[0] = Damaged(scratch_, 7360000);  // in the weights of layer 2
  const TwoExits exits =
      RunApart(RunOf(Bundled(), scratch_ / "out"), RunOf(damaged, scratch_ / "out"));
  EXPECT_TRUE(Exits(exits.rank0, 3));
  EXPECT_TRUE(Exits(exits.rank1, 3));
  EXPECT_TRUE(Says(exits.rank0.err, "rank 1 loaded other weights for layer 2"));
  EXPECT_EQ(exits.rank1.err, "");
  model_ = Bundled();
  ExpectGoesOn(scratch_ / "out", 2);
}

// Each rank reads different rows of the embedding table.
TEST_F(Apart, ARankWithDamagedEmbeddingsIsNamed) {
  Arguments damaged = Bundled();
  damaged[0] = Damaged(scratch_, 38057 * 60 + 20000);
  const TwoExits exits =
      RunApart(RunOf(Bundled(), scratch_ / "out"), RunOf(damaged, scratch_ / "out"));
  EXPECT_TRUE(Exits(exits.rank0, 3));
  EXPECT_TRUE(Exits(exits.rank1, 3));
  EXPECT_TRUE(Says(exits.rank0.err, "rank 1 read a different model.safetensors"));
  EXPECT_FALSE(fs::exists(scratch_ / "out"));
}

TEST_F(Apart, RanksThatAreCountedDifferentlyAreRefused) {
  const TwoExits exits = RunApart(Run(), Run(), 3);
  EXPECT_TRUE(Exits(exits.rank0, 2));
  EXPECT_TRUE(Exits(exits.rank1, 2));
  EXPECT_TRUE(Says(exits.rank0.err, "3 ranks"));
}

TEST_F(Apart, APortThatIsTakenIsSaid) {
  const Port port(true);
  EXPECT_TRUE(
      Exits(RunProgram(OSCAR_CALIBRATE, Run(), PlaceOf(0, 2, port.number())), 4, "MASTER_PORT"));
}

TEST_F(Apart, ARank0ThatCannotBeReachedIsSaid) {
  const Port port(false);
  const auto begin = std::chrono::steady_clock::now();
  const ProgramExit exit = RunProgram(OSCAR_CALIBRATE, Run(), PlaceOf(1, 2, port.number()));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, kTimeout);
  EXPECT_LT(took, kTimeout + std::chrono::seconds(5));
  EXPECT_TRUE(Exits(exit, 4, "cannot reach rank 0"));
  EXPECT_EQ(std::ranges::count(exit.err, '\n'), 1) << exit.err;
}

TEST_F(Apart, RanksThatDoNotComeAreNamed) {
  const Port port(false);
  EXPECT_TRUE(Exits(RunProgram(OSCAR_CALIBRATE, Run(), PlaceOf(0, 3, port.number())), 4,
                    "did not join within 12 s; missing ranks: 1 2"));
}

}  // namespace
}  // namespace oscar
