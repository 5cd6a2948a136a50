// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Expects the same ids as Hugging Face tokenizers in every case.
#include "tests/capture/text/tokenizer_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

void ExpectAllEqual(const CaseCount& count, const std::string& what) {
  EXPECT_GT(count.total, 0) << what;
  EXPECT_EQ(count.failures.size(), 0)
      << what << ": " << count.failures.size() << " of " << count.total << " differ";
  for (size_t i = 0; i < count.failures.size() && i < 8; ++i) {
    ADD_FAILURE() << what << ": " << count.failures[i];
  }
}

TEST(TokenizerCases, BundledCasesAreEqual) {
  for (const char* layout : {"qwen3", "llama2", "mistral-v0.3", "gemma"}) {
    const auto folder = TestData("tokenizers") / layout;
    const Tokenizer tokenizer = Tokenizer::Load(folder / "tokenizer.json");
    ExpectAllEqual(CheckEncodings(tokenizer, folder / "cases.jsonl"),
                   fmt::format("{} encode", layout));
    ExpectAllEqual(CheckDecodings(tokenizer, folder / "decode.jsonl"),
                   fmt::format("{} decode", layout));
  }
}

// The file holds small random tokenizers that cover all components of layouts without ByteLevel,
// each with the library's results for a few texts.
TEST(TokenizerCases, ComponentsAreEqual) {
  std::ifstream in(TestData("tokenizers") / "components.jsonl", std::ios::binary);
  int cases = 0;
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const Tokenizer tokenizer = LoadTokenizer(row.at("tokenizer"), "components");
    for (const nlohmann::json& item : row.at("cases")) {
      ++cases;
      EXPECT_EQ(nlohmann::json(tokenizer.Encode(item.at("text").get<std::string>(),
                                                item.at("special").get<bool>())),
                item.at("ids"))
          << item << row.at("tokenizer");
      EXPECT_EQ(tokenizer.Decode(item.at("tokens").get<std::vector<int32_t>>(),
                                 item.at("skip").get<bool>()),
                item.at("decoded").get<std::string>())
          << item << row.at("tokenizer");
    }
  }
  EXPECT_GE(cases, 100);
}

TEST(TokenizerCases, PackIsEqualOrRefused) {
  OSCAR_PACK_OR_SKIP(path, "tokenizers");
  int layouts_equal = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (!std::filesystem::exists(entry.path() / "tokenizer.json")) continue;
    const std::string name = entry.path().filename().string();
    try {
      const Tokenizer tokenizer = Tokenizer::Load(entry.path() / "tokenizer.json");
      const CaseCount encode = CheckEncodings(tokenizer, entry.path() / "cases.jsonl");
      const CaseCount decode = CheckDecodings(tokenizer, entry.path() / "decode.jsonl");
      ExpectAllEqual(encode, name + " encode");
      ExpectAllEqual(decode, name + " decode");
      fmt::print("{}: {} encodings and {} decodings compared\n", name, encode.total, decode.total);
      ++layouts_equal;
      // These cases may differ: for characters newer than Unicode 12, the library's tables disagree
      // with each other.
      if (const auto edge = entry.path() / "unicode_edge.jsonl"; std::filesystem::exists(edge)) {
        const CaseCount count = CheckEncodings(tokenizer, edge);
        fmt::print("{}: {} of {} cases with characters newer than Unicode 12 differ\n", name,
                   count.failures.size(), count.total);
      }
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("supported"), std::string::npos) << error.what();
      fmt::print("{}: refused: {}\n", name, error.what());
    }
  }
  EXPECT_GE(layouts_equal, 16);
}

}  // namespace
}  // namespace oscar
