// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/builtin_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "capture/files/digest.h"
#include "capture/files/utf8.h"
#include "capture/text/data_source.h"
#include "capture/text/overlap.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr int64_t kTinyVocabSize = 8256;
constexpr size_t kWindows = 320;  // tokens that sink and recent windows keep in full

std::string Genre(const std::string& name) {
  const size_t begin = name.starts_with("builtin:") ? 8 : 0;
  return name.substr(begin, name.rfind('-') - begin);
}

const std::set<std::string> kGenres = {"prose",  "dialogue", "code",    "structured",
                                       "tables", "numbers",  "scripts", "recall"};

// A different digest means different artifacts: raise kBuiltinCorpusVersion, then pin it here.
TEST(BuiltinCorpus, BytesOfThisVersionArePinned) {
  static_assert(kBuiltinCorpusVersion == 1, "pin the digest of the new version");
  EXPECT_EQ(BuiltinCorpusDigest(BuiltinCorpus()),
            "681c0058b5ced1874e472d00b94975ea35adc7ac43b64e9aa083722a75655f07");
  static_assert(kBuiltinEvaluationVersion == 1, "pin the digest of the new version");
  EXPECT_EQ(BuiltinCorpusDigest(BuiltinEvaluationCorpus()),
            "4c1465cf28a47d2eea9775565b17588832c74ff8a8ed6bfb35d8fc7357d29f6a");
  EXPECT_EQ(Sha256Hex(BuiltinHaystack()),
            "facd05c7bda9c52944a50808dae5e02ba728436c972c27a6ad369285e8587b42");
}

TEST(BuiltinCorpus, IsCleanText) {
  std::set<std::string> names;
  std::vector<BuiltinDocument> corpus = BuiltinCorpus();
  for (BuiltinDocument& document : BuiltinEvaluationCorpus())
    corpus.push_back({"evaluation " + document.name, document.text});
  for (const BuiltinDocument& document : corpus) {
    EXPECT_EQ(FirstInvalidUtf8(document.text), std::nullopt) << document.name;
    EXPECT_EQ(document.text.find('\0'), std::string::npos) << document.name;
    EXPECT_TRUE(names.insert(document.name).second) << document.name;
  }
}

TEST(BuiltinCorpus, SizesAndGenres) {
  const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  const DataSet all = LoadData({{}, 1 << 20, 1 << 20}, &tokenizer, kTinyVocabSize);
  EXPECT_EQ(all.name, "builtin corpus v1");
  EXPECT_GE(all.counts.tokens_used, 45000);
  EXPECT_LE(all.counts.tokens_used, 62000);
  EXPECT_EQ(all.counts.tokens_dropped, 0);
  std::map<std::string, size_t> tokens;
  int medium = 0;
  int small = 0;
  int large = 0;
  int64_t behind_the_windows = 0;
  for (const Document& document : all.documents) {
    const size_t n = document.ids.size();
    tokens[Genre(document.origin)] += n;
    small += n >= 100 && n <= 400 ? 1 : 0;
    medium += n >= 1500 && n <= 3500 ? 1 : 0;
    large += n >= 4000 && n <= 6000 ? 1 : 0;
    behind_the_windows += static_cast<int64_t>(n > kWindows ? n - kWindows : 0);
  }
  for (const std::string& genre : kGenres) {
    EXPECT_GE(tokens[genre], 2000u) << genre;
    EXPECT_LE(tokens[genre], 20000u) << genre;
  }
  EXPECT_EQ(tokens.size(), kGenres.size());
  EXPECT_GE(small, 3);
  EXPECT_GE(medium, 12);
  EXPECT_GE(large, 1);
  EXPECT_GE(behind_the_windows, all.counts.tokens_used * 3 / 4);
}

TEST(BuiltinCorpus, DefaultBudgetHasEveryGenre) {
  const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  const DataSet data = LoadData({{}, 30000, 8192}, &tokenizer, kTinyVocabSize);
  EXPECT_GE(data.counts.tokens_used, 29000);
  EXPECT_LE(data.counts.tokens_used, 30000);
  std::set<std::string> genres;
  for (const Document& document : data.documents) genres.insert(Genre(document.origin));
  EXPECT_EQ(genres, kGenres);
}

// What oscar-validate judges with when no data is given, after a calibration on the other corpus.
TEST(BuiltinCorpus, EvaluationTextIsNotCalibrationText) {
  const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  DataOptions options;
  options.token_budget = options.max_sequence = 1 << 20;
  const DataSet calibration = LoadData(options, &tokenizer, kTinyVocabSize);
  options.builtin = BuiltinText::kEvaluation;
  const DataSet evaluation = LoadData(options, &tokenizer, kTinyVocabSize);
  EXPECT_EQ(evaluation.name, "builtin evaluation corpus v1");
  EXPECT_GE(evaluation.counts.tokens_used, 40000);
  std::set<std::string> genres;
  for (const Document& document : evaluation.documents) genres.insert(Genre(document.origin));
  EXPECT_EQ(genres, kGenres);
  const OverlapResult overlap =
      FindOverlap(MakeFingerprints(calibration), calibration.digest, evaluation);
  EXPECT_LT(overlap.fraction, 0.03);
  EXPECT_LT(overlap.worst_fraction, 0.25);
  EXPECT_FALSE(overlap.refused);
}

// The point of the recall genre: an entry stated at the beginning is repeated far behind.
TEST(BuiltinCorpus, RecallReachesFarBack) {
  const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  const std::vector<BuiltinDocument> corpus = BuiltinCorpus();
  const auto recall = std::find_if(corpus.begin(), corpus.end(),
                                   [](const BuiltinDocument& d) { return d.name == "recall-1"; });
  ASSERT_NE(recall, corpus.end());
  const size_t line = recall->text.find("karst = ");
  ASSERT_NE(line, std::string::npos);
  const std::string entry = recall->text.substr(line, recall->text.find('\n', line) - line);
  const size_t again = recall->text.rfind(entry);
  EXPECT_GT(tokenizer.Encode(recall->text.substr(line, again - line), false).size(), 2000u);
}

}  // namespace
}  // namespace oscar
