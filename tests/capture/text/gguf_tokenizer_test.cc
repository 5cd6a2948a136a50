// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a tokenizer read from GGUF keys with the tokenizer that the keys were written from.
#include "capture/text/tokenizer/gguf_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "capture/text/data/chat_format.h"
#include "capture/text/tokenizer/sentencepiece.h"
#include "capture/text/tokenizer/tokenizer_files.h"
#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/capture/text/tokenizer_cases.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

struct Keys {
  std::vector<std::string> entries;
  void Text(const std::string& key, std::string_view value) {
    entries.push_back(RawEntry("tokenizer." + key, value));
  }
  void Flag(const std::string& key, bool value) {
    entries.push_back(RawEntry("tokenizer." + key, 7, std::string(1, value ? '\1' : '\0')));
  }
  void Id(const std::string& key, uint32_t value) {
    entries.push_back(RawEntry("tokenizer." + key, value));
  }
  template <class Values, class Raw>
  void Array(const std::string& key, uint32_t type, const Values& values, const Raw& raw) {
    std::string bytes = RawNumber(type) + RawNumber<uint64_t>(values.size());
    for (const auto& value : values) bytes += raw(value);
    entries.push_back(RawEntry("tokenizer." + key, 9, bytes));
  }
  void Tokens(const std::vector<std::string>& tokens, const std::vector<int32_t>& types) {
    Array("ggml.tokens", 8, tokens, RawText);
    Array("ggml.token_type", 5, types, RawNumber<int32_t>);
  }
  fs::path Write(const std::string& name) const {
    const fs::path file = TestScratch(name) / "m.gguf";
    RawGguf gguf;
    gguf.entries = entries;
    std::ofstream(file, std::ios::binary) << gguf.Bytes();
    return file;
  }
};

// Returns the keys that llama.cpp's converter writes for a tokenizer.json.
Keys OfTokenizerJson(const nlohmann::json& json, const std::string& model) {
  std::map<int, std::string> by_id;
  std::map<int, int> types;
  for (const auto& [token, id] : json.at("model").at("vocab").items()) by_id[id] = token;
  for (const nlohmann::json& token : json.at("added_tokens")) {
    by_id[token.at("id")] = token.at("content");
    types[token.at("id")] = token.at("special").get<bool>() ? 3 : 4;
  }
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  for (int id = 0; id <= by_id.rbegin()->first; ++id) {
    tokens.push_back(by_id.contains(id) ? by_id[id] : fmt::format("[PAD{}]", id));
    kinds.push_back(types.contains(id) ? types[id] : by_id.contains(id) ? 1 : 5);
  }
  std::vector<std::string> merges;
  for (const nlohmann::json& merge : json.at("model").at("merges")) {
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  Keys keys;
  keys.Text("ggml.model", model);
  keys.Tokens(tokens, kinds);
  keys.Array("ggml.merges", 8, merges, RawText);
  return keys;
}

void ExpectLayoutEqual(const fs::path& folder, const std::string& pre, const Keys& keys) {
  const Tokenizer tokenizer = OpenTokenizer(keys.Write("layout")).value();
  const CaseCount encode = CheckEncodings(tokenizer, folder / "cases.jsonl");
  EXPECT_GT(encode.total, 0);
  for (const std::string& failure : encode.failures) ADD_FAILURE() << pre << ": " << failure;
  for (const std::string& failure : CheckDecodings(tokenizer, folder / "decode.jsonl").failures)
    ADD_FAILURE() << pre << ": " << failure;
}

nlohmann::json TokenizerJsonOf(const fs::path& folder) {
  return nlohmann::json::parse(ReadText(folder / "tokenizer.json"));
}

TEST(GgufTokenizer, QwenIsEqual) {
  const fs::path folder = TestData("tokenizers") / "qwen3";
  Keys keys = OfTokenizerJson(TokenizerJsonOf(folder), "gpt2");
  keys.Text("ggml.pre", "qwen2");
  keys.Flag("ggml.add_bos_token", false);
  ExpectLayoutEqual(folder, "qwen2", keys);
}

TEST(GgufTokenizer, PackIsEqual) {
  OSCAR_PACK_OR_SKIP(pack, "tokenizers");
  for (const auto& [layout, pre] :
       std::initializer_list<std::pair<const char*, const char*>>{{"qwen3", "qwen2"},
                                                                  {"qwen3.5", "qwen35"},
                                                                  {"llama3", "llama-bpe"},
                                                                  {"gpt-oss", "gpt-4o"},
                                                                  {"tekken", "tekken"},
                                                                  {"deepseek-v3", "deepseek-v3"},
                                                                  {"deepseek-v2", "deepseek-coder"},
                                                                  {"smollm", "smollm"},
                                                                  {"gemma", ""}}) {
    const nlohmann::json json = TokenizerJsonOf(pack / layout);
    Keys keys = OfTokenizerJson(json, *pre == '\0' ? "gemma4" : "gpt2");
    if (*pre != '\0') keys.Text("ggml.pre", pre);
    const nlohmann::json config =
        nlohmann::json::parse(ReadText(pack / layout / "tokenizer_config.json"));
    for (const nlohmann::json& token : json.at("added_tokens")) {
      if (token.at("content") == config.value("bos_token", nlohmann::json()))
        keys.Id("ggml.bos_token_id", token.at("id").get<uint32_t>());
      if (token.at("content") == config.value("unk_token", nlohmann::json()))
        keys.Id("ggml.unknown_token_id", token.at("id").get<uint32_t>());
    }
    const bool bos = json.dump().find("TemplateProcessing") != std::string::npos;
    keys.Flag("ggml.add_bos_token", bos);
    ExpectLayoutEqual(pack / layout, layout, keys);
  }
}

// A SentencePiece vocabulary must be the same from a GGUF as from its tokenizer.model.
TEST(GgufTokenizer, PiecesAreEqual) {
  for (const char* name : {"llama", "gemma"}) {
    const SentencePieceVocabulary vocabulary = ParseSentencePieceModel(
        ReadText(TestData("sentencepiece") / (std::string(name) + ".model")), name);
    std::vector<std::string> tokens;
    std::vector<int32_t> types;
    std::vector<float> scores;
    for (const auto& piece : vocabulary.pieces) {
      tokens.push_back(piece.text);
      // The converter replaces U+2581 with a space, because llama.cpp looks for these pieces in the
      // raw text.
      if (piece.type == SentencePieceVocabulary::Type::kUserDefined)
        for (size_t at; (at = tokens.back().find("\u2581")) != std::string::npos;)
          tokens.back().replace(at, 3, " ");
      types.push_back(static_cast<int32_t>(piece.type));
      scores.push_back(piece.score);
    }
    Keys keys;
    keys.Text("ggml.model", "llama");
    keys.Text("ggml.pre", "default");
    keys.Tokens(tokens, types);
    keys.Array("ggml.scores", 6, scores, RawNumber<float>);
    keys.Flag("ggml.add_space_prefix", vocabulary.add_dummy_prefix);
    keys.Flag("ggml.add_bos_token", false);
    const Tokenizer tokenizer = OpenTokenizer(keys.Write("pieces")).value();
    std::ifstream in(TestData("sentencepiece") / "cases.jsonl", std::ios::binary);
    int cases = 0;
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json row = nlohmann::json::parse(line);
      const bool has_escape = row.at("text").get<std::string>().find("\u2581") != line.npos;
      if (row.at("model") != name || has_escape) continue;
      ++cases;
      EXPECT_EQ(nlohmann::json(tokenizer.Encode(row.at("text").get<std::string>(), true)),
                row.at("ids"))
          << row;
    }
    EXPECT_GT(cases, 70);
  }
}

TEST(GgufTokenizer, BosTemplateAndStopTokensAreThoseOfTheKeys) {
  Keys keys;
  keys.Text("ggml.model", "llama");
  keys.Tokens({"<unk>", "<s>", "</s>", "\u2581", "a", "\u2581a"}, {2, 3, 3, 1, 1, 1});
  keys.Array("ggml.scores", 6, std::vector<float>{0, 0, 0, -3, -2, -1}, RawNumber<float>);
  keys.Id("ggml.bos_token_id", 1);
  keys.Id("ggml.eos_token_id", 2);
  keys.Text("chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  const fs::path file = keys.Write("keys");
  EXPECT_EQ(OpenTokenizer(file).value().Encode("a", true), (std::vector<int32_t>{1, 5}));
  const auto format = ChatFormat::Find(file, {});
  ASSERT_TRUE(format);
  EXPECT_EQ(ReadTokenizerConfig(file).at("eos_token"), "</s>");
}

// PCRE2 must accept every pattern of the table.
TEST(GgufTokenizer, EveryKindEncodes) {
  for (const char* pre :
       {"gpt-2", "smollm", "llama-bpe", "glm4", "qwen2", "stablelm2", "qwen35", "tekken", "gpt-4o",
        "deepseek-v3", "deepseek-llm", "deepseek-coder", "falcon", "default"}) {
    Keys keys = OfTokenizerJson(TinyTokenizerJson(), "gpt2");
    keys.Text("ggml.pre", pre);
    const Tokenizer tokenizer = OpenTokenizer(keys.Write("kinds")).value();
    const std::string text = "Don't STOP: 12345 \u4f60\u597d \u0436abc  \n\n<|im_start|>";
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text, true), false), text) << pre;
  }
}

TEST(GgufTokenizer, UnknownKindsAreRefusedByName) {
  const auto refused = [](const std::function<void(Keys&)>& write) {
    Keys keys;
    write(keys);
    keys.Tokens({"a"}, {1});
    keys.Array("ggml.merges", 8, std::vector<std::string>(), RawText);
    return ErrorOf<InputError>([&] { OpenTokenizer(keys.Write("refused")); });
  };
  const std::string model = refused([](Keys& keys) { keys.Text("ggml.model", "rwkv"); });
  EXPECT_TRUE(
      Says(model, "tokenizer.ggml.model \"rwkv\" is not supported; supported: gpt2, llama"));
  const std::string pre = refused([](Keys& keys) {
    keys.Text("ggml.model", "gpt2");
    keys.Text("ggml.pre", "viking");
  });
  EXPECT_TRUE(Says(pre, "tokenizer.ggml.pre \"viking\" is not supported; supported: gpt-2"));
  EXPECT_FALSE(OpenTokenizer(Keys().Write("none")));
}

}  // namespace
}  // namespace oscar
