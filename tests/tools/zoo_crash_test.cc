// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests oscar-zoo: exit codes and JSON, two publishers at once, and a publisher that is killed or
// runs out of disk space at every operation that changes the zoo (write_faults.c). Afterwards the
// zoo must verify, and the next publish must succeed. Longer than 400 lines because every verb that
// changes a zoo goes through the same machinery.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Strings = ProgramStrings;

struct Ended : ProgramExit {
  Json json() const { return Json::parse(out); }
};

class ZooProgram : public testing::Test {
 protected:
  ZooProgram()
      : scratch_(TestScratch("zoo-program")), zoo_(scratch_ / "zoo"), out_(scratch_ / "pulls/out") {
    InitZoo(zoo_);
    for (const unsigned seed : {1U, 2U, 3U}) WriteValidated(Artifact(seed), seed);
  }

  fs::path Artifact(unsigned seed) const { return scratch_ / ("artifact" + std::to_string(seed)); }

  pid_t Start(const Strings& arguments, const Strings& environment, const std::string& log) {
    return StartProgram(OSCAR_ZOO_PROGRAM, arguments, environment, scratch_ / log);
  }
  Ended Wait(pid_t child, const std::string& log) {
    return {WaitForProgram(child, scratch_ / log)};
  }
  Ended Zoo(const Strings& arguments, const Strings& environment = {}) {
    return Wait(Start(arguments, environment, "log"), "log");
  }
  Ended Publish(unsigned seed, Strings more = {}, const Strings& environment = {}) {
    more.insert(more.begin(), {"publish", Artifact(seed).string(), "--zoo", zoo_.string()});
    return Zoo(more, environment);
  }
  void ExpectSound(const std::string& when) {
    const Ended verified = Zoo({"verify", "--zoo", zoo_.string()});
    EXPECT_EQ(verified.code, 0) << when << "\n" << verified.out << verified.err;
  }
  static Strings Faults(const fs::path& below, const std::string& setting) {
    return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + below.string(), setting};
  }
  // Counts the file operations of one publish into a zoo that already has a version.
  long CountPublish() {
    EXPECT_EQ(Publish(1).code, 0);
    fs::copy(zoo_, scratch_ / "fresh", fs::copy_options::recursive);
    const Ended ended =
        Publish(2, {}, Faults(zoo_, "OSCAR_FAULT_COUNT=" + (scratch_ / "count").string()));
    EXPECT_EQ(ended.code, 0) << ended.err;
    return std::stol(ReadText(scratch_ / "count"));
  }
  // Counts the file operations of one pull of the published version to out_.
  long CountPull() {
    EXPECT_EQ(Publish(1).code, 0);
    EXPECT_EQ(PullAnew("OSCAR_FAULT_COUNT=" + (scratch_ / "count").string()).code, 0);
    return std::stol(ReadText(scratch_ / "count"));
  }
  // Pulls into an empty folder, without the remains of earlier pulls.
  Ended PullAnew(const std::string& fault, const Strings& more = {}) {
    fs::remove_all(out_.parent_path());
    fs::create_directory(out_.parent_path());
    Strings faults = Faults(out_.parent_path(), fault);
    faults.insert(faults.end(), more.begin(), more.end());
    return Pull(faults);
  }
  Ended Pull(const Strings& environment = {}) {
    return Zoo({"pull", "example/Tiny", "--zoo", zoo_.string(), "-o", out_.string()}, environment);
  }
  void Reset() {
    fs::remove_all(zoo_);
    fs::copy(scratch_ / "fresh", zoo_, fs::copy_options::recursive);
  }

  fs::path scratch_, zoo_, out_;
};

TEST_F(ZooProgram, VerbsPrintTheirResultAndOneJsonObjectEach) {
  const Ended published = Publish(1);
  EXPECT_EQ(published.code, 0) << published.err;
  const std::string entry = (zoo_ / "entries/example/Tiny/0.1.0.json").string() + "\n";
  EXPECT_TRUE(published.out.ends_with(entry)) << published.out;

  EXPECT_EQ(Publish(2, {"--json"}).json().at("version"), "0.2.0");
  const std::string zoo = zoo_.string();
  const Json ls = Zoo({"ls", "--zoo", zoo, "--json"}).json();
  ASSERT_EQ(ls.at("entries").size(), 2u);
  EXPECT_EQ(ls.at("entries")[0].at("latest"), false);
  EXPECT_EQ(ls.at("entries")[1].at("latest"), true);
  EXPECT_NE(Zoo({"ls"}, {"OSCAR_ZOO=" + zoo}).out.find("0.2.0"), std::string::npos);
  const Json info = Zoo({"info", "example/Tiny@0.1.0", "--zoo", zoo, "--json"}).json();
  EXPECT_EQ(info.at("versions").size(), 2u);
  EXPECT_EQ(info.at("files").size(), 7u);
  EXPECT_EQ(info.at("model").at("id"), "example/Tiny");
  EXPECT_EQ(info.at("validation").at("gate").at("passed"), true);
  // Without --json, the same is printed in words.
  const std::string said = Zoo({"info", "example/Tiny@0.1.0", "--zoo", zoo}).out;
  EXPECT_NE(said.find("\nversions         0.1.0, 0.2.0\n"), std::string::npos) << said;
  EXPECT_NE(said.find("\nmodel            example/Tiny\n"), std::string::npos) << said;
  EXPECT_EQ(said.find_first_of("{}\""), std::string::npos) << said;

  const fs::path out = scratch_ / "out";
  const Strings pull = {"pull", "example/Tiny", "--zoo", zoo, "-o", out.string()};
  const Ended pulled = Zoo(pull);
  EXPECT_EQ(pulled.code, 0) << pulled.err;
  EXPECT_TRUE(pulled.out.ends_with(out.string() + "\n"));
  EXPECT_TRUE(FileBytes(out) == FileBytes(Artifact(2)));
  EXPECT_EQ(Zoo(pull).code, 3);  // the output exists

  const Json verified = Zoo({"verify", "--zoo", zoo, "--json"}).json();
  EXPECT_EQ(verified.at("ok"), true);
  EXPECT_EQ(verified.at("entries"), 2);
  for (const std::string& sound : {out.string(), zoo})
    EXPECT_EQ(Zoo({"lint", sound, "--json"}).json().at("counts").at("error"), 0) << sound;
  EXPECT_EQ(Zoo({"init", (scratch_ / "second").string(), "--json"}).json().at("verb"), "init");
}

TEST_F(ZooProgram, ExitCodesSayWhatFailed) {
  EXPECT_EQ(Zoo({}).code, 2);
  EXPECT_EQ(Zoo({"--help"}).code, 0);
  EXPECT_EQ(Zoo({"ls"}, {"OSCAR_ZOO="}).code, 2);
  EXPECT_EQ(Publish(1, {"--name", "../x"}).code, 2);
  EXPECT_EQ(Publish(1, {"--version", "1.0"}).code, 2);
  EXPECT_EQ(Publish(1, {"--gate", "kl<>1"}).code, 2);
  EXPECT_EQ(Publish(1, {"--gate", "kl<=0.0001"}).code, 1);
  EXPECT_EQ(Publish(1, {"--version", "1.0.0"}).code, 0);
  const Ended again = Publish(1, {"--version", "1.0.0", "--json"});
  EXPECT_TRUE(Exits(again, 3));
  EXPECT_EQ(again.json().at("error").at("exit_code"), 3);
  EXPECT_NE(again.err.find("exists already"), std::string::npos) << again.err;
  EXPECT_EQ(Zoo({"info", "a/b", "--zoo", zoo_.string()}).code, 3);
  EXPECT_EQ(Zoo({"ls", "--zoo", scratch_.string()}).code, 3);

  EditJson(Artifact(2) / "report.json", [](Json& report) { report.erase("validation"); });
  Reseal(Artifact(2));
  const Ended refused = Publish(2, {"--json"});
  EXPECT_TRUE(Exits(refused, 1));
  EXPECT_EQ(refused.json().at("published"), false);
  EXPECT_EQ(refused.json().at("problems").size(), 1u);
  EXPECT_NE(Publish(2).err.find("oscar-validate"), std::string::npos);

  WriteText(zoo_ / "blobs/sha256" / Sha256Hex(ReadText(Artifact(1) / "report.json")), "x");
  const Ended damaged = Zoo({"verify", "--zoo", zoo_.string()});
  EXPECT_TRUE(Exits(damaged, 3));
  EXPECT_EQ(damaged.out.find("problem: entries/example/Tiny/1.0.0.json: report.json: blob "), 0u)
      << damaged.out;
  EXPECT_EQ(Zoo({"lint", zoo_.string()}).code, 1);
}

TEST_F(ZooProgram, OfTwoPublishersOfOneVersionExactlyOneWins) {
  for (int round = 0; round < 10; ++round) {
    const std::string version = std::to_string(round) + ".0.0";
    const auto start = [&](unsigned seed, const std::string& log) {
      return Start(
          {"publish", Artifact(seed).string(), "--zoo", zoo_.string(), "--version", version}, {},
          log);
    };
    const pid_t first = start(1, "first"), second = start(2, "second");
    const Ended a = Wait(first, "first"), b = Wait(second, "second");
    EXPECT_EQ(std::min(a.code, b.code), 0) << a.err << b.err;
    EXPECT_EQ(std::max(a.code, b.code), 3) << a.err << b.err;
    EXPECT_NE((a.err + b.err).find("exists already"), std::string::npos);
  }
  ExpectSound("after the race");
  EXPECT_EQ(Zoo({"ls", "--zoo", zoo_.string(), "--json"}).json().at("entries").size(), 10u);
}

TEST_F(ZooProgram, KilledAtAnyOperationTheZooVerifiesAndTheNextPublishSucceeds) {
  const long calls = CountPublish();
  ASSERT_GT(calls, 20);
  long published = 0;
  for (long at = 1; at <= calls; ++at) {
    SCOPED_TRACE("operation " + std::to_string(at) + " of " + std::to_string(calls));
    Reset();
    const Ended killed = Publish(2, {}, Faults(zoo_, "OSCAR_FAULT_KILL_AT=" + std::to_string(at)));
    EXPECT_EQ(killed.signal, SIGKILL) << killed.err;
    ExpectSound("killed");
    published += fs::exists(zoo_ / "entries/example/Tiny/0.2.0.json") ? 1 : 0;
    const Ended next = Publish(2, {"--json"});  // works as if nothing had happened
    ASSERT_EQ(next.code, 0) << next.err;
    EXPECT_EQ(next.json().at("version"), "0.2.0");
    EXPECT_EQ(next.json().at("latest"), "0.2.0");
    EXPECT_EQ(Publish(3, {"--version", "7.0.0"}).code, 0);
    ExpectSound("after the next publish");
    const fs::path staging = zoo_ / "staging/example/tiny";
    EXPECT_EQ(std::distance(fs::directory_iterator(staging), fs::directory_iterator()), 1)
        << "something besides the lock was left";
  }
  EXPECT_GT(published, 0);  // some kills come after the entry was written
  EXPECT_LT(published, calls);
}

TEST_F(ZooProgram, AFullDiskIsExitCode4AndNothingIsHalfPublished) {
  const long calls = CountPublish();
  for (long at = 1; at <= calls; ++at) {
    SCOPED_TRACE("operation " + std::to_string(at) + " of " + std::to_string(calls));
    Reset();
    const Ended full = Publish(2, {}, Faults(zoo_, "OSCAR_FAULT_ENOSPC_AT=" + std::to_string(at)));
    if (fs::exists(zoo_ / "entries/example/Tiny/0.2.0.json")) {  // the entry was already written
      EXPECT_EQ(full.code, 0) << full.err;
    } else {
      EXPECT_EQ(full.code, 4) << full.err;
      EXPECT_NE(full.err.find("No space left"), std::string::npos) << full.err;
    }
    ExpectSound("disk full");
    EXPECT_EQ(Publish(2).code, 0);
  }
}

// One call fails once, at every place in turn. An interrupted call (EINTR) is repeated; any other
// error leaves the version either published or not, and the zoo sound.
TEST_F(ZooProgram, ACallThatFailsOnceIsRepeatedOrReported) {
  const long calls = CountPublish();
  for (const int error : {EIO, EINTR}) {
    for (long at = 1; at <= calls; ++at) {
      SCOPED_TRACE(std::string(strerror(error)) + ", operation " + std::to_string(at));
      Reset();
      Strings faults = Faults(zoo_, "OSCAR_FAULT_ERRNO_AT=" + std::to_string(at));
      faults.push_back("OSCAR_FAULT_ERRNO=" + std::to_string(error));
      const Ended failed = Publish(2, {}, faults);
      EXPECT_EQ(failed.signal, 0) << failed.err;
      EXPECT_TRUE(failed.code == 0 || failed.code == 4) << failed.code << failed.err;
      if (failed.code == 0) {
        EXPECT_TRUE(fs::exists(zoo_ / "entries/example/Tiny/0.2.0.json"));
      }
      ExpectSound("a call failed");
      const Ended next = Publish(2);
      EXPECT_EQ(next.code, 0) << next.err;
    }
  }
}

TEST_F(ZooProgram, APullWithACallThatFailsIsWholeOrAnError) {
  const long calls = CountPull();
  for (const int error : {EIO, EINTR}) {
    for (long at = 1; at <= calls; ++at) {
      SCOPED_TRACE(std::string(strerror(error)) + ", operation " + std::to_string(at));
      const Ended ended = PullAnew("OSCAR_FAULT_ERRNO_AT=" + std::to_string(at),
                                   {"OSCAR_FAULT_ERRNO=" + std::to_string(error)});
      EXPECT_TRUE(ended.code == 0 || ended.code == 4) << ended.code << ended.err;
      if (ended.code == 0) {
        EXPECT_TRUE(fs::exists(out_));
      }
      if (fs::exists(out_)) {
        EXPECT_TRUE(FileBytes(out_) == FileBytes(Artifact(1)));
      }
    }
  }
}

// A machine crash may reorder writes that are not flushed. So fsync must separate the steps:
// contents before names, blobs and their folder before the entry, the entry before the pointer.
// Killing the process cannot show this.
TEST_F(ZooProgram, EveryStepIsDurableBeforeTheNext) {
  ASSERT_EQ(Publish(1).code, 0);
  const fs::path log = scratch_ / "steps";
  ASSERT_EQ(Publish(2, {}, Faults(zoo_, "OSCAR_FAULT_LOG=" + log.string())).code, 0);
  const std::string blobs = (zoo_ / "blobs/sha256").string(),
                    folder = (zoo_ / "entries/example/Tiny").string();
  std::set<std::string> unflushed;         // files written since their last fsync
  bool blobs_open = false, entry = false;  // renames in the folder since its last fsync
  bool entry_open = false, pointer = false;
  size_t blob_count = 0;
  std::istringstream lines(ReadText(log));
  for (std::string what, path, to; lines >> what >> path;) {
    if (what == "write") unflushed.insert(path);
    if (what == "fsync") {
      unflushed.erase(path);
      if (path == blobs) blobs_open = false;
      if (path == folder) entry_open = false;
    }
    if (what != "rename") continue;
    lines >> to;
    EXPECT_EQ(unflushed.count(path), 0u) << path << " got its name before it was flushed";
    if (fs::path(to).parent_path() == blobs) {
      EXPECT_FALSE(entry) << "a blob after the entry";
      blobs_open = true;
      ++blob_count;
    } else if (to == folder + "/0.2.0.json") {
      EXPECT_FALSE(blobs_open) << "the folder of blobs was not flushed before the entry";
      entry = entry_open = true;
    } else if (to == folder + "/latest.json") {
      EXPECT_TRUE(entry);
      EXPECT_FALSE(entry_open) << "the entry was not flushed before the pointer";
      pointer = entry_open = true;
    }
  }
  EXPECT_GE(blob_count, 5u);
  EXPECT_TRUE(entry && pointer);
  EXPECT_FALSE(entry_open) << "the pointer was not flushed";
}

TEST_F(ZooProgram, AKilledPullLeavesNothingUnderTheName) {
  const long calls = CountPull();
  for (long at = 1; at <= calls; ++at) {
    EXPECT_EQ(PullAnew("OSCAR_FAULT_KILL_AT=" + std::to_string(at)).signal, SIGKILL);
    const bool done = fs::exists(out_) || Pull().code == 0;
    EXPECT_TRUE(done);
    EXPECT_TRUE(FileBytes(out_) == FileBytes(Artifact(1))) << at;
  }
}

TEST_F(ZooProgram, AFullDiskDuringAPullIsExitCode4AndTheNextGoesOn) {
  const long calls = CountPull();
  for (long at = 1; at <= calls; at += 3) {
    const Ended full = PullAnew("OSCAR_FAULT_ENOSPC_AT=" + std::to_string(at));
    EXPECT_EQ(full.code == 4, !fs::exists(out_)) << at << full.err;
    if (!fs::exists(out_)) {
      EXPECT_EQ(Pull().code, 0);
    }
    EXPECT_TRUE(FileBytes(out_) == FileBytes(Artifact(1))) << at;
  }
}

TEST_F(ZooProgram, KeepersKilledOrFailingAtAnyOperationLeaveAZooThatVerifies) {
  const fs::path origin = scratch_ / "origin", copy = scratch_ / "copy";
  EXPECT_EQ(Publish(1).code, 0);
  EXPECT_EQ(Publish(2).code, 0);
  fs::copy(zoo_, origin, fs::copy_options::recursive);
  struct Keeper {
    Strings arguments;
    fs::path zoo;  // the zoo that it changes
  };
  const std::string stray(1000, 'x');
  for (const Keeper& keeper :
       {Keeper{{"gc", "--zoo", zoo_.string()}, zoo_},
        Keeper{{"yank", "example/Tiny@0.2.0", "--zoo", zoo_.string(), "--reason", "x"}, zoo_},
        Keeper{{"mirror", copy.string(), "--zoo", origin.string()}, copy}}) {
    SCOPED_TRACE(keeper.arguments[0]);
    const auto prepare = [&] {
      fs::remove_all(zoo_);
      fs::copy(origin, zoo_, fs::copy_options::recursive);
      WriteText(zoo_ / "blobs/sha256" / Sha256Hex(stray), stray);
      fs::remove_all(copy);
      InitZoo(copy);
    };
    prepare();
    const std::string count = (scratch_ / "count").string();
    fs::remove(count);
    ASSERT_EQ(Zoo(keeper.arguments, Faults(keeper.zoo, "OSCAR_FAULT_COUNT=" + count)).code, 0);
    const long calls = std::stol(ReadText(count));
    for (const std::string fault :
         {"OSCAR_FAULT_KILL_AT=", "OSCAR_FAULT_ENOSPC_AT=", "OSCAR_FAULT_ERRNO_AT="})
      for (long at = 1; at <= calls; ++at) {
        SCOPED_TRACE(fault + std::to_string(at));
        prepare();
        Strings faults = Faults(keeper.zoo, fault + std::to_string(at));
        faults.push_back("OSCAR_FAULT_ERRNO=" + std::to_string(EIO));
        const Ended ended = Zoo(keeper.arguments, faults);
        if (fault == "OSCAR_FAULT_KILL_AT=") {
          EXPECT_EQ(ended.signal, SIGKILL) << ended.err;
        } else {
          EXPECT_TRUE(ended.code == 0 || ended.code == 4) << ended.code << ended.err;
        }
        const Ended verified = Zoo({"verify", "--zoo", keeper.zoo.string()});
        EXPECT_EQ(verified.code, 0) << at << verified.out << verified.err;
        const Ended again = Zoo(keeper.arguments);  // may report that it was already done
        EXPECT_TRUE(again.code == 0 || again.err.find("already yanked") != std::string::npos)
            << at << again.err;
        EXPECT_EQ(Zoo({"ls", "--zoo", keeper.zoo.string(), "--json"}).json().at("entries").size(),
                  2u);
        EXPECT_EQ(Zoo({"verify", "--zoo", keeper.zoo.string()}).code, 0);
      }
  }
}

TEST_F(ZooProgram, PublishersPullersAndGcAtOnceLoseNothing) {
  ASSERT_EQ(Publish(1, {"--version", "0.0.1"}).code, 0);
  std::vector<std::pair<pid_t, std::string>> children;
  const auto start = [&](Strings arguments) {
    const std::string log = "child" + std::to_string(children.size());
    arguments.insert(arguments.end(), {"--zoo", zoo_.string()});
    children.emplace_back(Start(arguments, {}, log), log);
  };
  for (int round = 1; round <= 3; ++round) {
    for (unsigned seed : {2U, 3U}) {
      start({"publish", Artifact(seed).string(), "--version",
             std::to_string(round) + "." + std::to_string(seed) + ".0"});
    }
    start({"gc"});
    for (int i = 0; i < 3; ++i) {
      start({"pull", "example/Tiny", "-o",
             (scratch_ / ("out" + std::to_string(children.size()))).string()});
    }
  }
  for (const auto& [child, log] : children) {
    const Ended ended = Wait(child, log);
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
  ExpectSound("after all");
  EXPECT_EQ(Zoo({"ls", "--zoo", zoo_.string(), "--json"}).json().at("entries").size(), 7u);
}

TEST_F(ZooProgram, AKilledInitIsFinishedByTheNext) {
  const fs::path folder = scratch_ / "inits", zoo = folder / "zoo";
  for (long at = 1; at < 40; ++at) {
    fs::remove_all(folder);
    fs::create_directory(folder);
    const Ended ended =
        Zoo({"init", zoo.string()}, Faults(folder, "OSCAR_FAULT_KILL_AT=" + std::to_string(at)));
    if (ended.signal == 0) break;  // init has fewer operations than `at`
    const bool done = fs::exists(zoo) || Zoo({"init", zoo.string()}).code == 0;
    EXPECT_TRUE(done);
    EXPECT_EQ(Zoo({"verify", "--zoo", zoo.string()}).code, 0) << at;
  }
}

}  // namespace
}  // namespace oscar
