// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the prompts that a model continues, and the tokens that end its answer.
#include "capture/text/data/prompts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "capture/text/data/stop_tokens.h"
#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

class Prompts : public testing::Test {
 protected:
  std::filesystem::path Put(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  PromptSet Load(const std::vector<std::filesystem::path>& files, int64_t most = 100,
                 int64_t longest = 400) {
    DataOptions options;
    options.files = files;
    options.model_directory = folder_;
    return LoadPrompts(options, tokenizer_, 262, most, longest);
  }
  std::string Text(const Document& prompt) const { return with_chatml_.Decode(prompt.ids, false); }
  // Returns a tokenizer without <|im_start|> and <|im_end|>, so that there is no chat format.
  static Tokenizer PlainTokenizer() {
    nlohmann::json json = TinyTokenizerJson();
    json["added_tokens"] = nlohmann::json::array({AddedTokenJson(260, "<s>")});
    return LoadTokenizer(json, "prompts-plain");
  }

  std::filesystem::path folder_ = TestScratch("prompts");
  Tokenizer with_chatml_ = LoadTokenizer(TinyTokenizerJson(), "prompts-tokenizer");
  Tokenizer plain_ = PlainTokenizer();
  const Tokenizer* tokenizer_ = &with_chatml_;
};

TEST_F(Prompts, OfAChatEndWhereTheAnswerBegins) {
  const auto file = Put(
      "chats.jsonl",
      R"({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "no"}, )"
      R"({"role": "user", "content": "c"}, {"role": "assistant", "content": "x"}, )"
      R"({"role": "assistant", "content": "y"}]})"
      "\n"
      R"({"messages": [{"role": "assistant", "content": "unasked"}]})"
      "\n"
      R"({"prompt": [{"role": "user", "content": "q"}], )"
      R"("response": [{"role": "assistant", "content": "a"}]})");
  const PromptSet set = Load({file});
  ASSERT_EQ(set.prompts.size(), 2u);  // the second chat has no user message
  EXPECT_EQ(Text(set.prompts[0]),
            "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\nno<|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(set.prompts[0].origin, "self:chats.jsonl:1");
  EXPECT_EQ(Text(set.prompts[1]), "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(set.chat_format, "chatml");
}

TEST_F(Prompts, TheTemplateIsAskedForABeginning) {
  Put("chat_template.jinja",
      "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
      "{% if add_generation_prompt %}(assistant){% endif %}");
  const auto file = Put("chats.jsonl", R"({"messages": [{"role": "user", "content": "hi"}]})");
  const PromptSet set = Load({file, Put("plain.txt", "a plain text")});
  EXPECT_EQ(Text(set.prompts[0]), "[user:hi](assistant)");
  EXPECT_EQ(Text(set.prompts[1]), "[user:a plain text](assistant)");
  EXPECT_EQ(set.chat_format, "template");
  // Data, unlike prompts, does not end with the beginning of an answer.
  DataOptions options;
  options.files = {file};
  options.model_directory = folder_;
  EXPECT_EQ(Text(LoadData(options, tokenizer_, 262).documents[0]), "[user:hi]");
}

TEST_F(Prompts, OfATextAreItsPassages) {
  tokenizer_ = &plain_;
  const std::string euro = "\xE2\x82\xAC";  // three tokens, split by the cut at 96
  std::string text(95, 'x');
  text += euro + std::string(3 * kPassageStride, 'y');
  const PromptSet set = Load({Put("long.txt", text), Put("short.txt", "zz")});
  ASSERT_EQ(set.prompts.size(), 5u);
  EXPECT_EQ(Text(set.prompts[0]), std::string(95, 'x'));
  EXPECT_EQ(Text(set.prompts[1]), "zz");
  EXPECT_EQ(Text(set.prompts[2]), std::string(96, 'y'));
  EXPECT_EQ(set.prompts[0].origin, "self:long.txt");
  EXPECT_EQ(set.prompts[1].origin, "self:short.txt");
  EXPECT_EQ(set.prompts[2].origin, "self:long.txt#2");
  EXPECT_EQ(set.prompts[4].origin, "self:long.txt#4");
  EXPECT_EQ(set.chat_format, "none");
  EXPECT_EQ(Load({folder_ / "long.txt"}, 2).prompts.size(), 2u);
}

TEST_F(Prompts, OfIdsNeedNoTokenizer) {
  tokenizer_ = nullptr;
  std::string row = "{\"input_ids\": [7";
  for (int i = 1; i < 700; ++i) row += "," + std::to_string(i % 250);
  const PromptSet set = Load({Put("ids.jsonl", row + "]}\n{\"input_ids\": [5, 6]}")});
  ASSERT_EQ(set.prompts.size(), 3u);
  EXPECT_EQ(set.prompts[0].ids.size(), 96u);
  EXPECT_EQ(set.prompts[1].ids, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(set.prompts[2].ids.front(), kPassageStride % 250);
}

TEST_F(Prompts, FilesTakeTurnsAndTooLongOnesAreLeftOut) {
  const auto first = Put("a.jsonl", "{\"text\": \"a1\"}\n{\"text\": \"a2\"}"),
             second = Put("b.jsonl", "{\"text\": \"b1\"}\n{\"text\": \"" + std::string(90, 'b') +
                                         "\"}\n{\"text\": \"b3\"}");
  tokenizer_ = &plain_;
  const PromptSet set = Load({first, second}, 100, 20);
  std::vector<std::string> texts;
  for (const Document& prompt : set.prompts) texts.push_back(Text(prompt));
  EXPECT_EQ(texts, (std::vector<std::string>{"a1", "b1", "a2", "b3"}));
  EXPECT_EQ(set.too_long, 1);
  try {
    Load({second}, 1, 1);
    ADD_FAILURE() << "nothing is left";
  } catch (const InputError& error) {
    EXPECT_TRUE(Says(error.what(), "there is nothing to continue"));
    EXPECT_EQ(error.remedy(), Remedy::kShorterAnswers);
  }
}

TEST_F(Prompts, StopTokensAreThoseOfAllThreeFiles) {
  const auto stop = [&](const Tokenizer* tokenizer) { return StopTokens(folder_, tokenizer, 262); };
  EXPECT_TRUE(stop(tokenizer_).empty());
  Put("config.json", R"({"eos_token_id": 9, "text_config": {"eos_token_id": [11, 12]}})");
  EXPECT_EQ(stop(tokenizer_), (std::vector<int32_t>{9, 11, 12}));
  Put("generation_config.json", R"({"eos_token_id": [3, 9, 999]})");  // 999 exceeds the vocabulary
  EXPECT_EQ(stop(tokenizer_), (std::vector<int32_t>{3, 9, 11, 12}));
  Put("tokenizer_config.json", R"({"eos_token": {"content": "<|im_end|>"}})");
  EXPECT_EQ(stop(tokenizer_), (std::vector<int32_t>{3, 9, 11, 12, 261}));
  EXPECT_EQ(stop(nullptr), (std::vector<int32_t>{3, 9, 11, 12}));
  Put("generation_config.json", R"({"eos_token_id": "</s>"})");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { stop(tokenizer_); }), "eos_token_id"));
}

}  // namespace
}  // namespace oscar
