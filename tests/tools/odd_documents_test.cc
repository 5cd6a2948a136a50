// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate on documents of unusual lengths: it makes an artifact or says why not.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/tools/small_runs.h"

namespace oscar {
namespace {

struct OddDocuments {
  const char* name;
  std::vector<int> lengths;  // tokens per document, repeated cyclically
  int count;
  ProgramStrings options;
  const char* refusal;  // part of the error message; empty: an artifact is made
};

class OddDocumentsTest : public testing::TestWithParam<OddDocuments> {};

TEST_P(OddDocumentsTest, AreCalibratedOnOrRefused) {
  const OddDocuments& given = GetParam();
  const std::filesystem::path scratch = TestScratch(std::string("odd_documents_") + given.name);
  std::vector<int> lengths;
  for (int i = 0; i < given.count; ++i)
    lengths.push_back(given.lengths[static_cast<size_t>(i) % given.lengths.size()]);
  WriteDocuments(scratch / "ids.jsonl", lengths, 32);
  ProgramStrings arguments =
      Words("% --data % --whole-documents --min-tokens 1 --device cpu -o %",
            {TestData("families/qwen2"), scratch / "ids.jsonl", scratch / "artifact"});
  arguments.insert(arguments.end(), given.options.begin(), given.options.end());
  const ProgramExit exit = RunProgram(OSCAR_CALIBRATE, arguments);
  EXPECT_EQ(exit.code, *given.refusal == 0 ? 0 : 3) << exit.signal << exit.all();
  EXPECT_NE(exit.err.find(given.refusal), std::string::npos) << exit.err;
}

INSTANTIATE_TEST_SUITE_P(
    , OddDocumentsTest,
    testing::Values(OddDocuments{"one_token", {1}, 400, {}, "two held-out rows"},
                    OddDocuments{"two_tokens", {2}, 200, {"--for", "any", "--bits", "7"}, ""},
                    OddDocuments{"one", {250}, 1, {"--for", "any", "--bits", "7"}, ""},
                    OddDocuments{"mixed", {1, 2, 200, 3, 90}, 20, {"--for", "sglang"}, ""},
                    OddDocuments{"one_row", {90}, 10, {"--error-rows", "1"}, "--error-rows"},
                    OddDocuments{"plain", {1}, 400, {"--no-auto", "--clip", "fixed"}, ""}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace oscar
