// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests rows with chats: the columns that form a chat, the template that renders it, and the
// variables that the template gets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "capture/files/digest.h"
#include "capture/text/data/chat_format.h"
#include "capture/text/data/data_source.h"
#include "capture/text/data/samples.h"
#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

class ChatData : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  DataSet Load(const std::string& row) {
    Write("rows.jsonl", row);
    DataOptions options;
    options.files = {folder_ / "rows.jsonl"};
    options.model_directory = folder_;
    options.chat = chat_;
    return LoadData(options, &tokenizer_, 262);
  }
  // Returns the tokens of the row, decoded to text.
  std::string Text(const std::string& row) {
    return tokenizer_.Decode(Load(row).documents.at(0).ids, false);
  }
  template <class Error>
  void ExpectError(const std::string& row, const std::string& part) {
    EXPECT_TRUE(Says(ErrorOf<Error>([&] { Load(row); }), part));
  }

  std::filesystem::path folder_ = TestScratch("chat");
  Tokenizer tokenizer_ = LoadTokenizer(TinyTokenizerJson(), "chat-tokenizer");
  ChatOptions chat_;
};

constexpr char kRow[] = R"({"messages": [{"role": "user", "content": "hi"}]})";

TEST_F(ChatData, TemplateOfTheModelIsFound) {
  const std::string source = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
  EXPECT_EQ(Text(kRow), "<|im_start|>user\nhi<|im_end|>\n");  // without a template: ChatML
  Write("chat_template.json", R"({"chat_template": "old {{ messages[0].role }}"})");
  EXPECT_EQ(Text(kRow), "old user");
  Write("tokenizer_config.json", R"({"chat_template": "config {{ messages[0].role }}"})");
  EXPECT_EQ(Text(kRow), "config user");
  Write("tokenizer_config.json", R"({"chat_template": [
      {"name": "default", "template": "plain"}, {"name": "rag", "template": "{{"},
      {"name": "tool_use", "template": "tools {{ tools[0].name }}"}]})");
  EXPECT_EQ(Text(kRow), "plain");
  EXPECT_EQ(Text(R"({"messages": [], "tools": [{"name": "f"}]})"), "tools f");
  EXPECT_EQ(Text(R"({"messages": [], "tools": "[{\"name\": \"g\"}]"})"), "tools g");
  Write("chat_template.jinja", source);
  const DataSet data = Load(kRow);
  EXPECT_EQ(tokenizer_.Decode(data.documents[0].ids, false), "[user:hi]");
  EXPECT_EQ(data.chat_format, "template");
  EXPECT_EQ(data.chat_template.at("sha256"), Sha256Hex(source));
  EXPECT_FALSE(data.chat_template.contains("date"));
  Write("mine.jinja", "mine");
  chat_.template_file = folder_ / "mine.jinja";
  EXPECT_EQ(Text(kRow), "mine");
}

TEST_F(ChatData, TemplateSeesTokensVariablesAndTheDate) {
  Write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<|im_start|>"}, "eos_token": "<|im_end|>", "pad_token": null})");
  Write("special_tokens_map.json", R"({"eos_token": "other", "unk_token": "?"})");
  Write("chat_template.jinja",
        "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token is defined }}"
        "{{ tools is none }}{{ add_generation_prompt }}|{{ a }}{{ a is string }}|{{ b }}|{{ c }}|"
        "{{ strftime_now('%d %b %Y') }}");
  chat_.variables = {"a=false", "b=x=y", "c=[1, \"z\"]", "add_generation_prompt=true"};
  chat_.date = "2024-02-29";
  const DataSet data = Load(kRow);
  EXPECT_EQ(tokenizer_.Decode(data.documents[0].ids, false),
            "<|im_start|><|im_end|>?FalseTrueTrue|FalseFalse|x=y|[1, 'z']|29 Feb 2024");
  EXPECT_EQ(data.documents[0].ids.at(0), 260);  // special tokens in a text are recognized
  EXPECT_EQ(data.chat_template.at("variables").at("b"), "x=y");
  EXPECT_EQ(data.chat_template.at("date"), "2024-02-29");
  const std::string samples = ShowSamples(data, &tokenizer_, 1);
  EXPECT_TRUE(Says(samples, "(chat format: template "));
  EXPECT_TRUE(Says(samples, ", date 2024-02-29)"));
}

TEST_F(ChatData, ColumnsAreFoundAsModelOptFindsThem) {
  Write("chat_template.jinja", "{{ messages|tojson }}");
  const std::string chat = R"([{"role": "user", "content": "hi"}])";
  EXPECT_EQ(
      Text(R"({"text": "x", "prompt": "p", "messages": [{"role": "user", "content": "hi"}]})"),
      chat);
  EXPECT_EQ(Text(R"({"messages": null, "conversations": [{"from": "human", "value": "hi"}]})"),
            chat);
  EXPECT_EQ(
      Text(
          R"({"conversations": [{"from": "gpt", "value": "a"}, {"from": "system", "value": "b"}]})"),
      R"([{"role": "assistant", "content": "a"}, {"role": "system", "content": "b"}])");
  EXPECT_EQ(Text(R"({"prompt": [{"role": "user", "content": "hi"}], "completion": []})"), chat);
  EXPECT_EQ(Text(R"({"text": "x", "prompt": "p", "response": "r"})"), "p\nr");
  EXPECT_EQ(Text(R"({"prompt": "p", "text": "x"})"), "x");
  // Keeps the order of a message's members, tool calls, content parts and the values of numbers.
  const std::string rich =
      R"([{"role": "assistant", "content": null, "tool_calls": [{"z": 1.50, "a": [true]}]}, )"
      R"({"role": "user", "content": [{"type": "text", "text": "é"}]}])";
  EXPECT_EQ(Text("{\"messages\": " + rich + "}"),
            R"([{"role": "assistant", "content": null, "tool_calls": [{"z": 1.5, "a": [true]}]}, )"
            R"({"role": "user", "content": [{"type": "text", "text": "é"}]}])");
}

// Fields are filled before rendering, as in transformers 5.24 (utils/chat_template_utils.py).
TEST_F(ChatData, ReasoningIsFilledFromItsOtherNames) {
  Write("chat_template.jinja",
        "{% for m in messages %}[{{ m.reasoning_content }}|{{ m.thinking }}]{% endfor %}");
  const auto text = [&](const std::string& members) {
    return Text(R"({"messages": [{"role": "assistant", "content": "c", )" + members + "}]}");
  };
  EXPECT_EQ(text(R"("reasoning": "r")"), "[r|r]");
  EXPECT_EQ(text(R"("thinking": "t")"), "[t|t]");
  EXPECT_EQ(text(R"("reasoning_content": "rc")"), "[rc|rc]");
  EXPECT_EQ(text(R"("reasoning": "r", "thinking": "t")"), "[t|t]");
  EXPECT_EQ(text(R"("thinking": "t", "reasoning_content": "rc")"), "[rc|t]");
  EXPECT_EQ(text(R"("reasoning": null)"), "[|]");
}

// The expected texts were rendered by transformers 5.24 from the same files.
TEST_F(ChatData, PublicReasoningIsRendered) {
  OSCAR_PACK_OR_SKIP(pack, "public_reports/06-reasoning-content-dropped");
  const std::string glm = "[gMASK]<sop><|user|>\nx<|assistant|>\n<think>{}</think>\nYo",
                    gpt =
                        "<|start|>user<|message|>x<|end|><|start|>assistant<|channel|>analysis"
                        "<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>Yo"
                        "<|return|>";
  for (const auto& [rows, reasoning] :
       {std::pair("x.jsonl", "because 1 < 2"), std::pair("reasoning.jsonl", "because")}) {
    const std::string row = ReadText(pack / rows);
    chat_.template_file = pack / "glm.jinja";
    EXPECT_EQ(Text(row), fmt::format(fmt::runtime(glm), reasoning));
    chat_.template_file = pack / "gpt-oss.jinja";
    EXPECT_TRUE(Text(row).ends_with(fmt::format(fmt::runtime(gpt), reasoning))) << Text(row);
  }
}

TEST_F(ChatData, PartsAreJoinedForTemplatesOfStrings) {
  const std::string row =
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi "}, )"
      R"({"type": "text", "text": "there"}]}, {"role": "assistant", "content": "hello"}]})";
  const std::string joined =
      "<|im_start|>user\nhi there<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>\n";
  EXPECT_EQ(Text(row), joined);  // ChatML
  for (const char* source :
       {"{% for m in messages %}{{ '[' + m.content + ']' }}{% endfor %}",
        "{% for m in messages %}[{{ m.content }}]{% endfor %}",
        "{% for m in messages %}[{% if m.content is string %}{{ m.content }}{% endif %}]{% endfor "
        "%}"}) {
    Write("chat_template.jinja", source);
    EXPECT_EQ(Text(row), "[hi there][hello]") << source;
  }
  Write("chat_template.jinja",
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for part "
        "in m.content %}<{{ part.text }}>{% endfor %}{% endif %}{% endfor %}");
  EXPECT_EQ(Text(row), "<hi ><there>hello");  // this template reads parts
}

TEST_F(ChatData, OtherTokenizersAreNamed) {
  Write("tiktoken.model", "");
  Write("rows.jsonl", kRow);
  DataOptions options;
  options.files = {folder_ / "rows.jsonl"};
  options.model_directory = folder_;
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { LoadData(options, nullptr, 262); }),
                   "only tiktoken.model, which is not supported"));
}

TEST_F(ChatData, MistakesAreNamed) {
  ExpectError<InputError>(R"({"conversations": [{"from": "narrator", "value": "x"}]})",
                          "conversations[0]: \"from\" is \"narrator\"");
  ExpectError<InputError>(R"({"messages": [], "tools": 3})", "\"tools\" must be a list");
  ExpectError<InputError>(R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
                          "message 0: content[0] is not text");
  ExpectError<InputError>(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})",
      "messages[0]: content[0]: this part has type \"image_url\"");
  ExpectError<InputError>(R"({"messages": [{"role": "user", "content": null}]})",
                          "must be a string; give a template with --chat-template");
  Write("chat_template.jinja",
        "{% if true %}\n{{ raise_exception('Roles must alternate') }}{% endif %}");
  ExpectError<InputError>(kRow, "rows.jsonl:1: ");
  ExpectError<InputError>(kRow, "chat_template.jinja:2: Roles must alternate");
  Write("chat_template.jinja", "{% for %}");
  ExpectError<InputError>(kRow, "chat_template.jinja: line 1");
  EXPECT_EQ(Text(R"({"text": "abc"})"), "abc");  // a template is read only if needed
  chat_.variables = {"x"};
  ExpectError<UsageError>(R"({"text": "abc"})", "rows with messages");
  Write("chat_template.jinja", "x");
  ExpectError<UsageError>(kRow, "expected NAME=VALUE");
  chat_.variables = {"x=1", "x=2"};
  ExpectError<UsageError>(kRow, "given twice");
  chat_.variables = {};
  for (const char* date :
       {"2026-02-29", "2026-1-1", "26-01-01", "2026-01-01T25:00:00", "today", ""}) {
    chat_.date = date;
    ExpectError<UsageError>(kRow, "expected a date");
  }
}

class DataMix : public testing::Test {
 protected:
  static std::vector<MixDocument> Documents(std::initializer_list<std::pair<int, int>> list) {
    std::vector<MixDocument> out;
    for (const auto& [source, tokens] : list) out.push_back({static_cast<size_t>(source), tokens});
    return out;
  }
};

TEST_F(DataMix, WeightsShareTheBudgetAndInterleave) {
  std::vector<MixDocument> documents;
  for (int i = 0; i < 100; ++i) documents.push_back({0, 10});
  for (int i = 0; i < 100; ++i) documents.push_back({1, 10});
  const Mix mix = ChooseMix(documents, {{3, 1}, {}}, 400);
  EXPECT_EQ(mix.classes[0].tokens_used, 300);
  EXPECT_EQ(mix.classes[1].tokens_used, 100);
  int64_t of_first = 0;
  for (size_t i = 0; i < mix.order.size(); ++i) {
    of_first += mix.order[i] < 100 ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(of_first), 0.75 * static_cast<double>(i + 1), 1.0) << i;
  }
}

TEST_F(DataMix, WhatOneCannotFillGoesToTheOthers) {
  const Mix mix = ChooseMix(Documents({{0, 10}, {1, 50}, {1, 50}, {1, 50}, {2, 40}, {2, 40}}),
                            {{1, 1, 2}, {}}, 200);
  // Source 0's share is 50, but it has only 10. Source 2's share of the rest is 127, but it has
  // only 80. Source 1 gets the remaining 110, which hold two of its documents.
  EXPECT_EQ(mix.classes[0].tokens_used, 10);
  EXPECT_EQ(mix.classes[1].tokens_used, 100);
  EXPECT_EQ(mix.classes[2].tokens_used, 80);
}

TEST_F(DataMix, BucketsGiveLongDocumentsTheirShare) {
  std::vector<MixDocument> documents;
  for (int i = 0; i < 100; ++i) documents.push_back({0, 5});
  for (int i = 0; i < 4; ++i) documents.push_back({0, 50});
  documents.push_back({0, 0});
  const Mix mix = ChooseMix(documents, {{}, {10, 100}}, 200);
  ASSERT_EQ(mix.classes.size(), 2u);
  EXPECT_EQ(mix.classes[0], (MixClass{0, 10, 1, 100, 500, 20, 100}));
  EXPECT_EQ(mix.classes[1], (MixClass{0, 100, 1, 4, 200, 2, 100}));
}

TEST_F(DataMix, NoWeightNoTokens) {
  const Mix mix = ChooseMix(Documents({{0, 10}, {1, 10}}), {{0, 1}, {}}, 100);
  EXPECT_EQ(mix.order, std::vector<size_t>{1});
  EXPECT_THROW(CheckMix({{1}, {}}, 2), UsageError);
  EXPECT_THROW(CheckMix({{0, 0}, {}}, 2), UsageError);
  EXPECT_THROW(CheckMix({{-1, 2}, {}}, 2), UsageError);
  EXPECT_THROW(CheckMix({{}, {10, 10}}, 1), UsageError);
  CheckMix({{0, 1}, {1, 2}}, 2);
}

TEST_F(ChatData, MixedDataIsAccountedFor) {
  Write("a.jsonl", "{\"input_ids\": [1,1]}\n{\"input_ids\": [2,2]}\n{\"input_ids\": [3,3]}\n");
  Write("b.jsonl", "{\"input_ids\": [4,4,4,4,4,4]}\n{\"input_ids\": []}\n");
  DataOptions options;
  options.files = {folder_ / "a.jsonl", folder_ / "b.jsonl"};
  options.token_budget = 8;
  options.max_sequence = 4;
  options.mix.weights = {1, 1};
  const DataSet data = LoadData(options, &tokenizer_, 262);
  ASSERT_EQ(data.documents.size(), 3u);
  EXPECT_EQ(data.documents[1].ids, (std::vector<int32_t>{4, 4, 4, 4}));
  EXPECT_EQ(data.counts, (DataCounts{5, 3, 1, 2, 12, 8, 2, 2}));
  ASSERT_EQ(data.mix.size(), 2u);
  options.pack = Separator{"", 9};
  const DataSet packed = LoadData(options, &tokenizer_, 262);
  const DataCounts& c = packed.counts;
  EXPECT_EQ(c.documents_sent, 5);
  EXPECT_EQ(c.documents_sent, c.documents_used + c.documents_dropped);
  EXPECT_EQ(c.tokens_sent, c.tokens_used + c.tokens_truncated + c.tokens_dropped);
}

}  // namespace
}  // namespace oscar
