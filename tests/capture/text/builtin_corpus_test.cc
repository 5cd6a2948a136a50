// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/builtin_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "capture/files/digest.h"
#include "capture/files/utf8.h"
#include "capture/text/data/data_source.h"
#include "capture/text/data/overlap.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr int64_t kTinyVocabSize = 8256;

const std::set<std::string> kDomains(kBuiltinDomains.begin(), kBuiltinDomains.end());

std::set<std::string> Domains(const DataSet& data) {
  std::set<std::string> domains;
  for (const Document& document : data.documents) domains.insert(document.domain);
  return domains;
}

DataSet Load(const DataOptions& options) {
  const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  return LoadData(options, &tokenizer, kTinyVocabSize);
}

std::map<std::string, int64_t> TokensByDomain(const DataSet& data) {
  std::map<std::string, int64_t> tokens;
  for (const Document& document : data.documents)
    tokens[document.domain] += std::ssize(document.ids);
  return tokens;
}

// If a digest differs, artifacts differ: raise kBuiltinCorpusVersion, then pin the new digest here.
TEST(BuiltinCorpus, BytesOfThisVersionArePinned) {
  static_assert(kBuiltinCorpusVersion == 2, "pin the digest of the new version");
  EXPECT_EQ(BuiltinCorpusDigest(BuiltinCorpus()),
            "a11292d4561888da81eec2a697e0b51999600965ad4b2855dfb1fb153ae15cde");
  static_assert(kBuiltinEvaluationVersion == 2, "pin the digest of the new version");
  EXPECT_EQ(BuiltinCorpusDigest(BuiltinEvaluationCorpus()),
            "afd36b126f213c8c637f2003e5c5b1cc951ec0e47429525f2015fb9e58d63f1c");
  EXPECT_EQ(Sha256Hex(BuiltinHaystack()),
            "facd05c7bda9c52944a50808dae5e02ba728436c972c27a6ad369285e8587b42");
}

TEST(BuiltinCorpus, IsCleanText) {
  for (const auto& corpus : {BuiltinCorpus(), BuiltinEvaluationCorpus()}) {
    std::set<std::string_view> names, texts;
    for (const BuiltinDocument& document : corpus) {
      EXPECT_EQ(FirstInvalidUtf8(document.text), std::nullopt) << document.name;
      EXPECT_EQ(document.text.find('\0'), std::string::npos) << document.name;
      EXPECT_GE(document.text.size(), 500u) << document.name;
      EXPECT_EQ(document.text.find("\r"), std::string::npos) << document.name;
      EXPECT_TRUE(names.insert(document.name).second) << document.name;
      EXPECT_TRUE(texts.insert(document.text).second) << document.name;
      EXPECT_TRUE(kDomains.contains(std::string(document.domain))) << document.name;
    }
  }
}

// Every document is ours, or from a package with a known version, digest and licence.
TEST(BuiltinCorpus, SourcesAreListed) {
  std::map<std::string, int> listed;  // number of documents per package
  std::istringstream lines(ReadText(TestData("../../capture/text/corpus/sources.tsv")));
  for (std::string line; std::getline(lines, line);) listed[line.substr(0, line.find('\t'))] = 0;
  for (const auto& corpus : {BuiltinCorpus(), BuiltinEvaluationCorpus()}) {
    for (const BuiltinDocument& document : corpus) {
      const std::string source(document.source.substr(0, document.source.find(':')));
      EXPECT_TRUE(listed.contains(source)) << document.name << " is from " << source;
      ++listed[source];
    }
  }
  for (const auto& [source, documents] : listed)
    EXPECT_TRUE(documents > 0 || source.starts_with("#") || source == "package") << source;
}

// Tokens are those of tiny-qwen3, whose tokenizer needs some 15 % more than a large model's.
TEST(BuiltinCorpus, EveryDomainIsLarge) {
  for (const bool evaluation : {false, true}) {
    DataOptions options;
    options.token_budget = options.max_sequence = 1 << 21;
    options.builtin = evaluation ? BuiltinText::kEvaluation : BuiltinText::kCalibration;
    const DataSet all = Load(options);
    EXPECT_EQ(all.name, evaluation ? "builtin evaluation corpus v2" : "builtin corpus v2");
    EXPECT_GE(all.counts.tokens_used, evaluation ? 200000 : 550000);
    EXPECT_EQ(all.counts.tokens_dropped, 0);
    for (const auto& [domain, tokens] : TokensByDomain(all))
      EXPECT_GE(tokens, evaluation ? 18000 : 45000) << domain;
    EXPECT_EQ(Domains(all), kDomains);
    for (const Document& document : all.documents) {
      if (document.domain != "long") continue;
      EXPECT_GE(document.ids.size(), 8000u) << document.origin;
      EXPECT_LE(document.ids.size(), 32000u) << document.origin;
    }
  }
}

TEST(BuiltinCorpus, EveryBudgetIsSharedByAllDomains) {
  for (const int64_t budget : {16384, 30000, 98304}) {
    const DataSet data = Load({{}, budget, 8192});
    EXPECT_EQ(data.counts.tokens_used, budget);
    EXPECT_EQ(Domains(data), kDomains);
    const int64_t share = (budget + 6) / 7;
    for (const auto& [domain, tokens] : TokensByDomain(data)) {
      EXPECT_GE(tokens, share * 3 / 4) << domain << " of " << budget;
      EXPECT_LE(tokens, share * 5 / 4) << domain << " of " << budget;
    }
  }
}

// A cache keeps 320 tokens in bf16 by default, so documents must be much longer to be of use.
TEST(BuiltinCorpus, SmallBudgetsHaveLongDocumentsOfFewDomains) {
  const DataSet data = Load({{}, 3000, 8192});
  EXPECT_EQ(data.counts.tokens_used, 3000);
  ASSERT_EQ(data.documents.size(), 2u);
  EXPECT_EQ(data.documents[0].ids.size(), 2048u);
  EXPECT_EQ(Load({{}, 7, 8192}).counts.tokens_used, 7);
}

TEST(BuiltinCorpus, PackedSequencesAreOfOneDomainEach) {
  DataOptions options;
  options.token_budget = 32768;
  options.max_sequence = 4096;
  options.pack = Separator{"", 0};
  const DataSet mixed = Load(options);
  EXPECT_EQ(mixed.counts.tokens_used, 32768);
  EXPECT_EQ(Domains(mixed), kDomains);
  EXPECT_EQ(mixed.documents.size(), 8u);
  options.builtin_domains = {"code"};
  const DataSet code = Load(options);
  EXPECT_EQ(code.counts.tokens_used, 32768);
  EXPECT_EQ(Domains(code), std::set<std::string>{"code"});
}

// oscar-validate uses the evaluation text by default, after a calibration on the other corpus.
TEST(BuiltinCorpus, EvaluationTextIsNotCalibrationText) {
  DataOptions options;
  options.token_budget = options.max_sequence = 1 << 21;
  const DataSet calibration = Load(options);
  options.builtin = BuiltinText::kEvaluation;
  const DataSet evaluation = Load(options);
  const OverlapResult overlap =
      FindOverlap(MakeFingerprints(calibration), calibration.digest, evaluation);
  EXPECT_LT(overlap.fraction, 0.01);
  EXPECT_LT(overlap.worst_fraction, 0.25) << overlap.worst_origin;
  EXPECT_FALSE(overlap.refused);
}

// The two corpora share no source except our own texts, translated messages and these packages.
TEST(BuiltinCorpus, SourcesOfTheTwoAreDisjoint) {
  std::set<std::string_view> calibration;
  for (const BuiltinDocument& document : BuiltinCorpus()) calibration.insert(document.source);
  for (const BuiltinDocument& document : BuiltinEvaluationCorpus()) {
    if (document.source.starts_with("oscar:") || document.source == "python3-django" ||
        document.source == "apache2-doc")
      continue;
    EXPECT_FALSE(calibration.contains(document.source))
        << document.name << " is from " << document.source;
  }
}

// Recall texts repeat an entry from their beginning much later.
TEST(BuiltinCorpus, RecallReachesFarBack) {
  const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  const std::vector<BuiltinDocument> corpus = BuiltinCorpus();
  const auto recall = std::ranges::find(corpus, "oscar:recall-1", &BuiltinDocument::source);
  ASSERT_NE(recall, corpus.end());
  const std::string text(recall->text);
  const size_t line = text.find("karst = ");
  ASSERT_NE(line, std::string::npos);
  const std::string entry = text.substr(line, text.find('\n', line) - line);
  const size_t again = text.rfind(entry);
  EXPECT_GT(tokenizer.Encode(text.substr(line, again - line), false).size(), 2000u);
}

}  // namespace
}  // namespace oscar
