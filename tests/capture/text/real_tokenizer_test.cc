// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a published model's tokenizer, read from its GGUF and from a converted directory, with
// the ids of Hugging Face tokenizers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/text/tokenizer/tokenizer_files.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// OSCAR_TEST_REAL_MODEL names a GGUF of SmolLM2-135M-Instruct, or a directory that contains one.
TEST(RealTokenizer, SmolLmIsEqual) {
  const char* const given = std::getenv("OSCAR_TEST_REAL_MODEL");
  if (given == nullptr) GTEST_SKIP() << "OSCAR_TEST_REAL_MODEL is not set";
  std::vector<fs::path> models = {given};
  const fs::path folder = fs::is_directory(given) ? fs::path(given) : fs::path(given).parent_path();
  if (fs::is_directory(given)) {
    models.clear();
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".gguf") models.push_back(entry.path());
  }
  for (const char* name : {".", "smollm2-135m"})
    if (fs::exists(folder / name / "tokenizer.json")) models.push_back(folder / name);
  ASSERT_FALSE(models.empty());
  for (const fs::path& model : models) {
    const Tokenizer tokenizer = OpenTokenizer(model).value();
    std::ifstream in(TestData("real") / "tokenizer_cases.jsonl", std::ios::binary);
    int cases = 0;
    int64_t lost = 0;
    for (std::string line; std::getline(in, line); ++cases) {
      const nlohmann::json row = nlohmann::json::parse(line);
      EXPECT_EQ(nlohmann::json(tokenizer.Encode(row.at("text").get<std::string>(), true, &lost)),
                row.at("ids"))
          << model << row;
    }
    EXPECT_EQ(cases, 300);
    EXPECT_GT(lost, 0);  // the vocabulary lacks some bytes
  }
}

}  // namespace
}  // namespace oscar
