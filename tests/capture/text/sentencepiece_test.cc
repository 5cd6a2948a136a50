// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares tokenizer.model files and Unigram with the ids of the reference libraries
// (tests/data/sentencepiece/make.py).
#include "capture/text/tokenizer/sentencepiece.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "capture/text/data/data_source.h"
#include "capture/text/tokenizer/tokenizer_files.h"
#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

std::vector<nlohmann::json> Rows(const std::string& name) {
  std::ifstream in(TestData("sentencepiece") / name, std::ios::binary);
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(SentencePiece, ModelsAreEqual) {
  std::map<std::string, Tokenizer> tokenizers;
  int cases = 0;
  for (const nlohmann::json& row : Rows("cases.jsonl")) {
    const auto name = row.at("model").get<std::string>();
    if (!tokenizers.contains(name)) {
      const fs::path model = TestScratch(name);
      fs::copy_file(TestData("sentencepiece") / (name + ".model"), model / "tokenizer.model");
      tokenizers.emplace(name, OpenTokenizer(model).value());
    }
    ++cases;
    EXPECT_EQ(nlohmann::json(tokenizers.at(name).Encode(row.at("text").get<std::string>(), true)),
              row.at("ids"))
        << row;
  }
  EXPECT_EQ(tokenizers.size(), 6u);
  EXPECT_GT(cases, 550);
}

TEST(SentencePiece, TextComesBack) {
  const fs::path model = TestScratch("decode");
  fs::copy_file(TestData("sentencepiece") / "llama.model", model / "tokenizer.model");
  const Tokenizer tokenizer = OpenTokenizer(model).value();
  for (const char* text : {"hello  world", " two", "na\u00efve \u4f60\u597d\n\n\U0001f600"})
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text, true), true), text);
}

void ExpectRowsEqual(const std::string& name, int least) {
  int cases = 0;
  for (const nlohmann::json& row : Rows(name)) {
    const Tokenizer tokenizer = LoadTokenizer(row.at("tokenizer"), "rows");
    for (const nlohmann::json& item : row.at("cases")) {
      ++cases;
      int64_t lost = 0;
      EXPECT_EQ(nlohmann::json(tokenizer.Encode(item.at("text").get<std::string>(),
                                                item.at("special").get<bool>(), &lost)),
                item.at("ids"))
          << item;
      EXPECT_EQ(lost, item.value("lost", 0)) << item;
      EXPECT_EQ(tokenizer.Decode(item.at("tokens").get<std::vector<int32_t>>(),
                                 item.at("skip").get<bool>()),
                item.at("decoded").get<std::string>())
          << item;
    }
  }
  EXPECT_GE(cases, least);
}

TEST(Tokenizer, UnigramIsEqual) { ExpectRowsEqual("unigram.jsonl", 270); }

TEST(Tokenizer, BytesWithoutATokenAreLeftOutAndCounted) {
  ExpectRowsEqual("fewer_bytes.jsonl", 240);
}

fs::path Data(const std::string& name, const std::string& content) {
  const fs::path file = TestScratch("data") / name;
  std::ofstream(file) << content;
  return file;
}

// Characters outside the vocabulary are dropped as the library does, but a text that loses more
// than one token in a thousand is refused, since it does not fit the model.
TEST(Tokenizer, DataThatLosesMuchIsRefused) {
  nlohmann::json json = TinyTokenizerJson();
  json["model"]["vocab"].erase("Z");
  const Tokenizer tokenizer = LoadTokenizer(json, "data-without-Z");
  const auto load = [&](const std::string& text) {
    return LoadData({{Data("lost.txt", text)}, 10000, 10000}, &tokenizer, 262);
  };
  const DataSet data = load("Z" + std::string(999, 'x'));
  EXPECT_EQ(data.lost, 1);
  EXPECT_EQ(data.counts.tokens_used, 999);
  EXPECT_EQ(load("xx").lost, 0);
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { load("Z" + std::string(998, 'x')); }),
                   "no token for 1 of 999 bytes or tokens (0.10 %)"));
}

TEST(Tokenizer, IdsNeedNone) {
  const LazyTokenizer broken([]() -> std::optional<Tokenizer> { throw InputError("asked for"); });
  const fs::path ids = Data("ids.jsonl", "{\"input_ids\": [1, 2]}\n");
  EXPECT_EQ(LoadData({{ids}, 10, 10}, broken, 262).counts.tokens_used, 2);
  EXPECT_THROW(LoadData({{Data("t.txt", "x")}, 10, 10}, broken, 262), InputError);
}

// Compares files of a model directory with transformers' results for the same directory.
TEST(TokenizerFiles, DirectoriesAreEqual) {
  nlohmann::json byte_level = Rows("fewer_bytes.jsonl").front().at("tokenizer");
  nlohmann::json strip = AddedTokenJson(500, "<|strip|>");
  strip["lstrip"] = true;
  byte_level["added_tokens"].push_back(strip);
  int cases = 0;
  for (const nlohmann::json& row : Rows("directories.jsonl")) {
    const fs::path model = TestScratch("directory");
    if (row.contains("model")) {
      fs::copy_file(TestData("sentencepiece") / (row.at("model").get<std::string>() + ".model"),
                    model / "tokenizer.model");
    }
    if (!row.contains("model")) std::ofstream(model / "tokenizer.json") << byte_level.dump();
    for (const auto& [name, content] : row.at("files").items())
      std::ofstream(model / name) << content.dump();
    const Tokenizer tokenizer = OpenTokenizer(model).value();
    for (const nlohmann::json& item : row.at("cases")) {
      ++cases;
      EXPECT_EQ(nlohmann::json(tokenizer.Encode(item.at("text").get<std::string>(), true)),
                item.at("ids"))
          << item << row.at("files").value("tokenizer_config.json", nlohmann::json());
    }
  }
  EXPECT_GE(cases, 40);
}

std::string Message(const std::string& bytes) {
  return ErrorOf<InputError>([&] { ParseSentencePieceModel(bytes, "m/tokenizer.model"); });
}

TEST(SentencePiece, BrokenModelsAreRefusedWithTheByte) {
  const std::string whole = ReadText(TestData("sentencepiece") / "plain-bpe.model");
  ASSERT_EQ(Message(whole), "");
  EXPECT_TRUE(Says(Message(""), "byte 0: no pieces"));
  EXPECT_TRUE(Says(Message("\x0A\x05\x0A\x09xyz"),
                   "byte 4: a field of 9 bytes, but only 3 bytes are left"));
  EXPECT_TRUE(Says(Message(std::string("\x0A\x03\x0A\x01\xFF", 5)), "not UTF-8"));
  EXPECT_TRUE(Says(Message("\x0B"), "wire type 3"));
  EXPECT_TRUE(Says(Message(std::string(11, '\xFF')), "more than 64 bits"));
  const std::string word = "\x0A\x03\x0A\x01z\x12\x02\x18\x03";
  EXPECT_TRUE(Says(Message(word), "model_type is 3"));
  EXPECT_TRUE(Says(Message("{\"version\": 1}"), "tokenizer.model"));
  for (size_t size = 0; size < whole.size(); size += 97) (void)Message(whole.substr(0, size));
}

}  // namespace
}  // namespace oscar
