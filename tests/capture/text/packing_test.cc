// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/packing.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <fstream>

#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using Ids = std::vector<int32_t>;

DataSet Rows(const std::vector<Ids>& documents) {
  DataSet data;
  data.name = "rows";
  for (size_t i = 0; i < documents.size(); ++i)
    data.documents.push_back({"rows:" + std::to_string(i + 1), documents[i]});
  return data;
}

void Write(const std::filesystem::path& file, const nlohmann::json& json) {
  std::ofstream(file, std::ios::binary) << json.dump();
}

template <class Error, class Function>
void ExpectError(Function function, const std::string& part) {
  EXPECT_TRUE(Says(ErrorOf<Error>([&] { function(); }), part));
}

TEST(Packing, SeparatorStandsBetweenDocuments) {
  DataSet data = Rows({{1, 2, 3}, {}, {4}, {5, 6, 7, 8, 9}});
  PackDocuments({"<end>", 99}, /*max_sequence=*/4, /*token_budget=*/1000, data);
  // The stream is 1 2 3 99 | 4 99 5 6 | 7 8 9. The last three tokens do not fill a sequence.
  ASSERT_EQ(data.documents.size(), 2u);
  EXPECT_EQ(data.documents[0].ids, (Ids{1, 2, 3, 99}));
  EXPECT_EQ(data.documents[0].origin, "rows:1");
  EXPECT_EQ(data.documents[1].ids, (Ids{4, 99, 5, 6}));
  EXPECT_EQ(data.documents[1].origin, "rows:3 to rows:4");
  EXPECT_EQ(data.separator->id, 99);
  const DataCounts expected = {.documents_sent = 4,
                               .documents_used = 3,
                               .documents_truncated = 1,
                               .documents_dropped = 1,
                               .tokens_sent = 11,
                               .tokens_used = 8,
                               .tokens_truncated = 3,
                               .tokens_dropped = 0};
  EXPECT_EQ(data.counts, expected);
}

TEST(Packing, BudgetIsFilledToWholeSequences) {
  DataSet data = Rows({Ids(100, 7), Ids(100, 8)});
  PackDocuments({"<end>", 99}, 8, 50, data);
  EXPECT_EQ(data.documents.size(), 6u);
  EXPECT_EQ(data.counts.tokens_used, 48);
  EXPECT_EQ(data.counts.tokens_truncated, 52);
  EXPECT_EQ(data.counts.tokens_dropped, 101);  // the second document and the separator
  EXPECT_EQ(data.counts.documents_dropped, 1);
}

TEST(Packing, EveryTokenIsAccountedFor) {
  EXPECT_TRUE(rc::check("sent = used + truncated + dropped", [] {
    const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 30));
    const auto length = *rc::gen::inRange<int64_t>(1, 25);
    const auto budget = length + *rc::gen::inRange<int64_t>(0, 80);
    std::vector<Ids> documents;
    Ids stream;
    for (size_t i = 0; i < lengths.size(); ++i) {
      documents.emplace_back(static_cast<size_t>(lengths[i]), static_cast<int32_t>(i));
      if (lengths[i] == 0) continue;
      if (!stream.empty()) stream.push_back(1000);
      stream.insert(stream.end(), documents.back().begin(), documents.back().end());
    }
    RC_PRE(static_cast<int64_t>(stream.size()) >= length);
    DataSet data = Rows(documents);
    PackDocuments({"<end>", 1000}, length, budget, data);
    Ids joined;
    for (const Document& document : data.documents) {
      RC_ASSERT(static_cast<int64_t>(document.ids.size()) == length);
      joined.insert(joined.end(), document.ids.begin(), document.ids.end());
    }
    RC_ASSERT(joined.size() <= static_cast<size_t>(budget));
    RC_ASSERT(std::equal(joined.begin(), joined.end(), stream.begin()));
    const DataCounts& n = data.counts;
    RC_ASSERT(n.tokens_used == static_cast<int64_t>(joined.size()));
    RC_ASSERT(n.tokens_sent == static_cast<int64_t>(stream.size()));
    RC_ASSERT(n.tokens_sent == n.tokens_used + n.tokens_truncated + n.tokens_dropped);
    RC_ASSERT(n.documents_sent == n.documents_used + n.documents_dropped);
    RC_ASSERT(n.documents_truncated <= 1);
  }));
}

TEST(Packing, TooLittleIsAnError) {
  DataSet data = Rows({{1, 2}, {3}});
  ExpectError<InputError>([&] { PackDocuments({"", 9}, 5, 100, data); }, "4 tokens in 2 documents");
  ExpectError<UsageError>([&] { PackDocuments({"", 9}, 5, 4, data); }, "token budget 4");
}

TEST(Packing, SeparatorOutsideTheVocabularyIsAnError) {
  const auto folder = TestScratch("packing-vocabulary");
  std::ofstream(folder / "rows.jsonl") << R"({"input_ids": [1, 2, 3]})";
  DataOptions options;
  options.files = {folder / "rows.jsonl"};
  options.max_sequence = 2;
  options.pack = Separator{"<end>", 10};
  ExpectError<InputError>([&] { LoadData(options, nullptr, 10); }, "separator \"<end>\" has id 10");
  EXPECT_EQ(LoadData(options, nullptr, 11).documents[0].ids, (Ids{1, 2}));
}

TEST(Packing, EndOfTextGoesBeforeEndOfTurn) {
  const auto folder = TestScratch("packing-separator");
  Write(folder / "tokenizer_config.json", {{"eos_token", "<|im_end|>"}});
  nlohmann::json json = TinyTokenizerJson();
  const Tokenizer without = LoadTokenizer(json, "packing-without");
  EXPECT_EQ(FindSeparator(folder, &without).id, 261);
  json["added_tokens"].push_back(AddedTokenJson(262, "<|endoftext|>"));
  const Tokenizer with = LoadTokenizer(json, "packing-with");
  EXPECT_EQ(FindSeparator(folder, &with).token, "<|endoftext|>");
  EXPECT_EQ(FindSeparator(folder, &with).id, 262);
  EXPECT_EQ(FindSeparator(folder, &with, "<|im_start|>").id, 260);
  EXPECT_EQ(FindSeparator(folder, &with, "17").id, 17);
  ExpectError<InputError>([&] { FindSeparator(folder, &with, "</s>"); }, "no token \"</s>\"");
}

// A text begins with the tokenizer's own leading tokens, or with the separator if it has none.
TEST(Packing, ATextOpensBehindTheTokenizersOwnTokensOrTheSeparator) {
  const auto folder = TestScratch("packing-opening");
  Write(folder / "tokenizer_config.json", {{"eos_token", "<|im_end|>"}});
  nlohmann::json json = TinyTokenizerJson();
  const Tokenizer plain = LoadTokenizer(json, "packing-plain");
  EXPECT_EQ(LeadingSpecialTokens(plain), Ids());
  EXPECT_EQ(OpeningTokens(folder, &plain), Ids{261});
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<|im_start|>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", nlohmann::json::array()},
      {"special_tokens",
       {{"<|im_start|>", {{"id", "<|im_start|>"}, {"ids", {260}}, {"tokens", {"<|im_start|>"}}}}}}};
  const Tokenizer with = LoadTokenizer(json, "packing-opening-with");
  EXPECT_EQ(OpeningTokens(folder, &with), Ids{260});
}

TEST(Packing, SeparatorFromConfigurationFiles) {
  const auto folder = TestScratch("packing-config");
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(), "packing-config-tokenizer");
  ExpectError<InputError>([&] { FindSeparator(folder, &tokenizer); }, "no separator");
  ExpectError<InputError>([&] { FindSeparator(folder, nullptr); }, "no separator");
  Write(folder / "tokenizer_config.json",
        {{"eos_token", {{"content", "<|im_end|>"}, {"lstrip", false}}}});
  EXPECT_EQ(FindSeparator(folder, &tokenizer).id, 261);
  Write(folder / "config.json", {{"eos_token_id", {5, 6}}});
  EXPECT_EQ(FindSeparator(folder, nullptr).id, 5);
  Write(folder / "config.json", {{"eos_token_id", 7}});
  EXPECT_EQ(FindSeparator(folder, nullptr).id, 7);
  Write(folder / "tokenizer_config.json", {{"eos_token", 3}});
  ExpectError<InputError>([&] { FindSeparator(folder, &tokenizer); }, "eos_token");
}

// An independent simulation (issue 4) used these data.
TEST(Packing, HeldOutTextOfTheProofModel) {
  OSCAR_PACK_OR_SKIP(model, "models/proof-qwen3");
  OSCAR_PACK_OR_SKIP(calibration, "calibration");
  const Tokenizer tokenizer = Tokenizer::Load(model / "tokenizer.json");
  DataOptions options;
  options.files = {calibration / "heldout.jsonl"};
  options.token_budget = 6 * 4096;
  options.max_sequence = 4096;
  options.pack = FindSeparator(model, &tokenizer);
  EXPECT_EQ(options.pack->id, 8192);
  const DataSet packed = LoadData(options, &tokenizer, 8256);
  ASSERT_EQ(packed.documents.size(), 6u);
  const DataSet whole = LoadData({options.files, 1 << 24, 1 << 20}, &tokenizer, 8256);
  Ids stream;
  for (const Document& document : whole.documents) {
    if (!stream.empty()) stream.push_back(8192);
    stream.insert(stream.end(), document.ids.begin(), document.ids.end());
  }
  for (size_t i = 0; i < 6; ++i) {
    ASSERT_EQ(packed.documents[i].ids.size(), 4096u);
    EXPECT_TRUE(std::equal(packed.documents[i].ids.begin(), packed.documents[i].ids.end(),
                           stream.begin() + static_cast<ptrdiff_t>(4096 * i)));
  }
}

}  // namespace
}  // namespace oscar
