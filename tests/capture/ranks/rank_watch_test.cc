// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests what the watch counts as progress, in a job with one rank whose words are kept in memory.
#include "capture/ranks/rank_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace oscar {
namespace {

using std::chrono::milliseconds;

std::chrono::nanoseconds OwnProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Runs a rank for six seconds that reports no progress. In every `quarters`-th quarter of a second,
// it uses the processor for the time `computed`.
[[noreturn]] void RunOf(milliseconds computed, int quarters) {
  std::mutex mutex;
  std::map<std::string, std::string> words;
  const RankWatch watch(
      {}, std::chrono::seconds(2),
      {[&](const std::string& key, const std::string& value) {
         const std::lock_guard lock(mutex);
         words[key] = value;
       },
       [&](const std::string& key) {
         const std::lock_guard lock(mutex);
         const auto found = words.find(key);
         return found == words.end() ? std::nullopt : std::optional(found->second);
       },
       {}},
      [](const RankWatch::End& end) { fprintf(stderr, "%s\n", end.message.c_str()); });
  for (int quarter = 0; quarter < 24; ++quarter) {
    if (quarter % quarters == 0) {
      const auto until = OwnProcessorTime() + computed;
      while (OwnProcessorTime() < until) {
      }
    }
    std::this_thread::sleep_for(milliseconds(250));
  }
  _exit(0);
}

class RankWatchDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RankWatchDeathTest, ARankThatComputesSlowlyGetsOn) {
  EXPECT_EXIT(RunOf(milliseconds(50), 1), testing::ExitedWithCode(0), "^$");
}

// So little processor time may also be an effect of a suspended virtual machine.
TEST_F(RankWatchDeathTest, MillisecondsNowAndThenAreNoProgress) {
  EXPECT_EXIT(RunOf(milliseconds(8), 4), testing::ExitedWithCode(4),
              "has made no progress for 2 s");
}

}  // namespace
}  // namespace oscar
