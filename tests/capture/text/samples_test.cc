// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/samples.h"

#include <gtest/gtest.h>

#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

TEST(Samples, ControlsAreVisible) {
  EXPECT_EQ(MakeControlsVisible("a\n\tb\r\\n"), "a\\n\\tb\\r\\\\n");
  EXPECT_EQ(MakeControlsVisible(std::string("\0\x1B[0m\u202E\u2028é", 13)),
            "\\u{0}\\u{1B}[0m\\u{202E}\\u{2028}é");
}

TEST(Samples, ShowsOriginLengthAndBothEnds) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(), "samples");
  DataSet data;
  data.name = "x.jsonl";
  data.chat_format = "chatml";
  data.counts = {3, 2, 1, 1, 110, 101, 4, 5};
  data.documents = {{"x.jsonl:1", {260, 'h', 'i', 261, '\n'}},
                    {"x.jsonl:2", std::vector<int32_t>(96, 'z')}};
  data.documents[1].ids[0] = 'A';
  data.documents[1].ids[95] = 'E';
  EXPECT_EQ(ShowSamples(data, &tokenizer, 1),
            "x.jsonl (chat format: chatml)\n"
            "documents: 3 sent, 2 used, 1 of these truncated, 1 dropped\n"
            "tokens:    110 sent, 101 used, 4 truncated, 5 dropped\n"
            "\n"
            "[1] x.jsonl:1: 5 tokens\n"
            "  all   <|im_start|>hi<|im_end|>\\n\n");
  const std::string both = ShowSamples(data, &tokenizer, 9);
  EXPECT_TRUE(Says(both, "[2] x.jsonl:2: 96 tokens\n  first A" + std::string(39, 'z') +
                             "\n  last  " + std::string(39, 'z') + "E\n"));
  EXPECT_TRUE(Says(ShowSamples(data, nullptr, 1), "all   260 104 105 261 10"));
}

}  // namespace
}  // namespace oscar
