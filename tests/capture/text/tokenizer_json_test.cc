// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that broken, hostile and unsupported files are refused with a message that names the
// problem.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

using Json = nlohmann::json;

void ExpectRefused(const Json& json, const std::string& message_part) {
  const std::string error = ErrorOf<InputError>([&] { LoadTokenizer(json, "refused"); });
  EXPECT_TRUE(Says(error, message_part));
  EXPECT_TRUE(Says(error, "tokenizer.json"));
}

// Each row has JSON pointers with the values to put there, and a part of the expected message.
using Refusals = std::vector<std::pair<const char*, const char*>>;

void ExpectRefused(const Refusals& refusals) {
  for (const auto& [changes, message_part] : refusals) {
    Json json = TinyTokenizerJson();
    const Json edits = Json::parse(changes);
    for (const auto& [pointer, value] : edits.items()) json[Json::json_pointer(pointer)] = value;
    SCOPED_TRACE(changes);
    ExpectRefused(json, message_part);
  }
}

TEST(TokenizerJson, UnknownComponentsAreRefusedByName) {
  ExpectRefused({
      {R"({"/normalizer":{"type":"BertNormalizer"}})", "\"BertNormalizer\" is not supported"},
      {R"({"/normalizer":{"type":"Precompiled","precompiled_charsmap":"AA=="}})",
       "precompiled_charsmap has 1 bytes and its trie 0"},
      {R"({"/pre_tokenizer":{"type":"UnicodeScripts"}})", "\"UnicodeScripts\" is not supported"},
      {R"({"/pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"x"}})",
       "prepend_scheme \"x\" is not supported"},
      {R"({"/pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel",
           "add_prefix_space":false,"use_regex":false},{"type":"Digits"}]}})",
       "a step after ByteLevel is not supported"},
      {R"({"/normalizer":{"type":"Strip","strip_left":true,"strip_right":true},
           "/pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"}})",
       "prepend_scheme \"first\" after a normalizer"},
      {R"({"/post_processor":{"type":"PairProcessing"}})", "\"PairProcessing\" is not supported"},
      {R"({"/post_processor":{"type":"RobertaProcessing","cls":["a",1],"sep":"b"}})",
       "\"sep\" must be [token, id]"},
      {R"({"/decoder":{"type":"WordPiece"}})", "\"WordPiece\""},
      {R"({"/model/type":"WordPiece"})", "\"WordPiece\" is not supported"},
      {R"({"/model":{"type":"Unigram","vocab":[]}})", "Unigram after a ByteLevel pre-tokenizer"},
      {R"({"/pre_tokenizer/new_field":1})", "\"new_field\""},
      {R"({"/model/new_field":1})", "\"new_field\""},
      {R"({"/version":"2.0"})", "version"},
      {R"({"/model/dropout":0.1})", "dropout"},
      {R"({"/model/end_of_word_suffix":"</w>"})", "end_of_word_suffix"},
      {R"({"/pre_tokenizer":{"type":"Sequence","pretokenizers":[
           {"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"},
           {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}})",
       "supported: Removed, Isolated, Contiguous"},
  });
}

TEST(TokenizerJson, BadIdsAreRefused) {
  ExpectRefused({
      {R"({"/model/vocab/new":-1})", "[0, 2^31)"},
      {R"({"/model/vocab/new":2147483648})", "[0, 2^31)"},
      {R"({"/model/vocab/new":1e30})", "[0, 2^31)"},
      {R"({"/model/vocab/new":18446744073709551615})", "[0, 2^31)"},
      {R"({"/model/vocab/new":"7"})", "[0, 2^31)"},
      {R"({"/model/vocab/new":256})", "id 256 is given to both"},
      {R"({"/added_tokens/0/id":-5})", "[0, 2^31)"},
      {R"({"/added_tokens/0/id":256})", "the vocabulary says \"ab\""},
      {R"({"/added_tokens/0/id":261})", "id 261 is given to both"},
      {R"({"/added_tokens/0/content":"abc"})", "the vocabulary says 257"},
      {R"({"/added_tokens/1/content":"<|im_start|>"})", "added twice"},
      {R"({"/post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}],
           "special_tokens":{"<s>":{"ids":[12345]}}}})",
       "inserts id 12345"},
  });
  Json json = TinyTokenizerJson();
  json["added_tokens"][0]["content"] = std::string(5000, 'x');
  ExpectRefused(json, "1024");
}

TEST(TokenizerJson, BadMergesAreRefused) {
  ExpectRefused({
      {R"({"/model/merges/-":["zz","a"]})", "merges[4]: \"zz\" is not in the vocabulary"},
      {R"({"/model/merges/-":["c","c"]})", "\"cc\""},
      {R"({"/model/merges/-":"a b c"})", "merges[4]"},
      {R"({"/model/merges/-":["a"]})", "merges[4]"},
      {R"({"/model/merges":"a b"})", "expected an array"},
  });
  Json json = TinyTokenizerJson();
  json["model"].erase("vocab");
  ExpectRefused(json, "vocab");
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
  Json json = TinyTokenizerJson();
  const Json digits = {{"type", "Digits"}};
  Json steps(200, digits);
  steps.push_back(json["pre_tokenizer"]);
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  ExpectRefused(json, "more than 64 steps");
}

TEST(TokenizerJson, OldMerges) {
  Json json = TinyTokenizerJson();
  json["model"]["merges"] = {"#version: 0.2", "a b", "ab c", "b c", "Ġ a"};
  const Tokenizer tokenizer = LoadTokenizer(json, "old-merges");
  EXPECT_EQ(tokenizer.Encode("abc", false), std::vector<int32_t>{257});
}

TEST(Tokenizer, InvalidUtf8IsAnErrorWithTheByte) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(), "utf8");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { tokenizer.Encode("ab\xFF", false); }), "byte 2"));
}

// Each replacement doubles the text. A chain of them must be an error before it fills the memory.
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
  // The limit applies to the whole text, here of many tokens that each grow a little.
  json["decoder"]["decoders"] = Json(7, twice);
  EXPECT_THROW(LoadTokenizer(json, "chain").Decode(std::vector<int32_t>(9999, 'a'), false),
               InputError);
}

}  // namespace
}  // namespace oscar
