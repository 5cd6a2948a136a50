// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that are broken, hostile or of a kind we do not read: each is refused, and the message
// names what is wrong.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "capture/files/digest.h"
#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using Json = nlohmann::json;

void ExpectRefused(const std::function<void(Json&)>& change, const std::string& message_part) {
  Json json = TinyTokenizerJson();
  change(json);
  try {
    LoadTokenizer(json, "refused");
    ADD_FAILURE() << "accepted; expected an error with: " << message_part;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(message_part), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("tokenizer.json"), std::string::npos) << error.what();
  }
}

TEST(TokenizerJson, UnknownComponentsAreRefusedByName) {
  ExpectRefused(
      [](Json& j) {
        j["normalizer"] = {{"type", "BertNormalizer"}};
      },
      "\"BertNormalizer\" is not supported; supported: NFC, NFD, NFKC, NFKD, Prepend");
  ExpectRefused(
      [](Json& j) {
        j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AA=="}};
      },
      "precompiled_charsmap has 1 bytes and its trie 0");
  ExpectRefused(
      [](Json& j) {
        j["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
      },
      "\"UnicodeScripts\" is not supported; supported: ByteLevel, Digits, Split, Metaspace");
  ExpectRefused(
      [](Json& j) {
        j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "x"}};
      },
      "prepend_scheme \"x\" is not supported; supported: first, never, always");
  ExpectRefused(
      [](Json& j) {
        const Json digits = {{"type", "Digits"}};
        j["pre_tokenizer"] = {{"type", "Sequence"},
                              {"pretokenizers", {j["pre_tokenizer"], digits}}};
      },
      "a step after ByteLevel is not supported");
  ExpectRefused(
      [](Json& j) {
        j["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
        j["pre_tokenizer"] = {
            {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
      },
      "prepend_scheme \"first\" after a normalizer");
  ExpectRefused(
      [](Json& j) {
        j["post_processor"] = {{"type", "PairProcessing"}};
      },
      "\"PairProcessing\" is not supported");
  ExpectRefused(
      [](Json& j) {
        j["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {"a", 1}}, {"sep", "b"}};
      },
      "\"sep\" must be [token, id]");
  ExpectRefused([](Json& j) { j["decoder"] = {{"type", "WordPiece"}}; }, "\"WordPiece\"");
  ExpectRefused([](Json& j) { j["model"]["type"] = "WordPiece"; },
                "\"WordPiece\" is not supported; supported: BPE, Unigram");
  ExpectRefused(
      [](Json& j) {
        j["model"] = {{"type", "Unigram"}, {"vocab", Json::array()}};
      },
      "Unigram after a ByteLevel pre-tokenizer");
  ExpectRefused([](Json& j) { j["pre_tokenizer"]["new_field"] = 1; }, "\"new_field\"");
  ExpectRefused([](Json& j) { j["model"]["new_field"] = 1; }, "\"new_field\"");
  ExpectRefused([](Json& j) { j["version"] = "2.0"; }, "version");
  ExpectRefused([](Json& j) { j["model"]["dropout"] = 0.1; }, "dropout");
  ExpectRefused([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix");
  ExpectRefused(
      [](Json& j) {
        Json split = {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Sideways"}};
        j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, j["pre_tokenizer"]}}};
      },
      "supported: Removed, Isolated, Contiguous");
}

TEST(TokenizerJson, BadIdsAreRefused) {
  ExpectRefused([](Json& j) { j["model"]["vocab"]["new"] = -1; }, "[0, 2^31)");
  ExpectRefused([](Json& j) { j["model"]["vocab"]["new"] = 2147483648; }, "[0, 2^31)");
  ExpectRefused([](Json& j) { j["model"]["vocab"]["new"] = 1e30; }, "[0, 2^31)");
  ExpectRefused([](Json& j) { j["model"]["vocab"]["new"] = 18446744073709551615U; }, "[0, 2^31)");
  ExpectRefused([](Json& j) { j["model"]["vocab"]["new"] = "7"; }, "[0, 2^31)");
  ExpectRefused([](Json& j) { j["model"]["vocab"]["new"] = 256; }, "id 256 is given to both");
  ExpectRefused([](Json& j) { j["added_tokens"][0]["id"] = -5; }, "[0, 2^31)");
  ExpectRefused([](Json& j) { j["added_tokens"][0]["id"] = 256; }, "the vocabulary says \"ab\"");
  ExpectRefused([](Json& j) { j["added_tokens"][0]["id"] = 261; }, "id 261 is given to both");
  ExpectRefused([](Json& j) { j["added_tokens"][0]["content"] = "abc"; },
                "the vocabulary says 257");
  ExpectRefused([](Json& j) { j["added_tokens"][1]["content"] = "<|im_start|>"; }, "added twice");
  ExpectRefused([](Json& j) { j["added_tokens"][0]["content"] = std::string(5000, 'x'); }, "1024");
  ExpectRefused(
      [](Json& j) {
        j["post_processor"] = {{"type", "TemplateProcessing"},
                               {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}},
                               {"special_tokens", {{"<s>", {{"ids", {12345}}}}}}};
      },
      "inserts id 12345");
}

TEST(TokenizerJson, BadMergesAreRefused) {
  ExpectRefused(
      [](Json& j) {
        j["model"]["merges"].push_back(Json::array({"zz", "a"}));
      },
      "merges[4]: \"zz\" is not in the vocabulary");
  ExpectRefused([](Json& j) { j["model"]["merges"].push_back(Json::array({"c", "c"})); }, "\"cc\"");
  ExpectRefused([](Json& j) { j["model"]["merges"].push_back("a b c"); }, "merges[4]");
  ExpectRefused([](Json& j) { j["model"]["merges"].push_back(Json::array({"a"})); }, "merges[4]");
  ExpectRefused([](Json& j) { j["model"]["merges"] = "a b"; }, "expected an array");
  ExpectRefused([](Json& j) { j["model"].erase("vocab"); }, "vocab");
}

TEST(TokenizerJson, WrongTypesAreErrorsNotCrashes) {
  for (const char* key : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                          "decoder", "model", "version"}) {
    for (const Json& value : {Json(3), Json("x"), Json::array({1}), Json::object({{"a", 1}})}) {
      Json json = TinyTokenizerJson();
      json[key] = value;
      EXPECT_THROW(LoadTokenizer(json, "types"), InputError) << key << " = " << value;
    }
  }
}

TEST(TokenizerJson, ManyStepsAreRefused) {
  ExpectRefused(
      [](Json& j) {
        Json steps = Json::array();
        for (int i = 0; i < 200; ++i) steps.push_back({{"type", "Digits"}});
        steps.push_back(j["pre_tokenizer"]);
        j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
      },
      "more than 64 steps");
}

TEST(TokenizerJson, OldMerges) {
  Json json = TinyTokenizerJson();
  json["model"]["merges"] = {"#version: 0.2", "a b", "ab c", "b c", "Ġ a"};
  const Tokenizer tokenizer = LoadTokenizer(json, "old-merges");
  EXPECT_EQ(tokenizer.Encode("abc", false), std::vector<int32_t>{257});
}

TEST(Tokenizer, InvalidUtf8IsAnErrorWithTheByte) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(), "utf8");
  try {
    tokenizer.Encode("ab\xFF", false);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("byte 2"), std::string::npos) << error.what();
  }
}

// Each replacement doubles the text: a chain of them is an error long before it fills the memory.
TEST(TokenizerJson, ChainsOfReplacementsAreBounded) {
  const Json twice = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  Json json = TinyTokenizerJson();
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array({twice, twice})}};
  EXPECT_EQ(LoadTokenizer(json, "chain").Encode("a", false).size(), 4u);
  json["normalizer"]["normalizers"] = Json(40, twice);
  EXPECT_THROW(LoadTokenizer(json, "chain").Encode("a", false), InputError);
  json["normalizer"] = twice;
  json["normalizer"]["content"] = std::string(100'000, 'a');
  EXPECT_THROW(LoadTokenizer(json, "chain").Encode("aaaa", false), InputError);

  json = TinyTokenizerJson();
  json["decoder"] = {{"type", "Sequence"}, {"decoders", Json(40, twice)}};
  EXPECT_THROW(LoadTokenizer(json, "chain").Decode(std::vector<int32_t>{'a'}, false), InputError);
  // Many tokens that grow a little each are one text.
  json["decoder"]["decoders"] = Json(7, twice);
  EXPECT_THROW(LoadTokenizer(json, "chain").Decode(std::vector<int32_t>(9999, 'a'), false),
               InputError);
}

}  // namespace
}  // namespace oscar
