// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-bench without a GPU: tests its list of benchmarks and its error messages.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace oscar {
namespace {

ProgramExit Bench(const ProgramStrings& arguments) {
  return RunProgram(OSCAR_BENCH, arguments, {"CUDA_VISIBLE_DEVICES="});
}

TEST(BenchProgram, ListsItsCasesWithoutAGpu) {
  const ProgramExit exit = Bench({"all", "--list"});
  EXPECT_TRUE(Exits(exit, 0));
  EXPECT_NE(exit.out.find("bandwidth: copy"), std::string::npos) << exit.out;
  EXPECT_NE(exit.out.find("peer: batch 32, 30000 tokens"), std::string::npos) << exit.out;
  const ProgramExit some = Bench({"peer", "--list", "--filter", "batch 32"});
  EXPECT_EQ(some.out.find("peer: batch 1,"), std::string::npos) << some.out;
  EXPECT_NE(some.out.find("peer: batch 32, 4096 tokens"), std::string::npos) << some.out;
}

TEST(BenchProgram, WithoutAGpuItIsARefusalAndNoCrash) {
  const ProgramExit exit = Bench({"bandwidth", "--json"});
  EXPECT_TRUE(Exits(exit, 4));
  EXPECT_EQ(exit.out, "");
  EXPECT_NE(exit.err.find("no CUDA device"), std::string::npos) << exit.err;
}

TEST(BenchProgram, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Bench({"decoed"}).code, 2);
  EXPECT_NE(Bench({"per"}).err.find("expected one of all, bandwidth, peer"), std::string::npos);
  EXPECT_EQ(Bench({"peer", "--filter", "batch 7,"}).code, 2);
  EXPECT_EQ(Bench({"peer", "--samples", "0"}).code, 2);
  EXPECT_EQ(Bench({}).code, 2);
}

}  // namespace
}  // namespace oscar
