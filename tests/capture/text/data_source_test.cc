// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/data_source.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>

#include "capture/files/digest.h"
#include "linalg/base/error.h"
#include "tests/capture/text/tiny_tokenizer.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using Ids = std::vector<int32_t>;

class DataSource : public testing::Test {
 protected:
  std::filesystem::path Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  DataSet Load(const std::filesystem::path& file, int64_t budget = 1000, int64_t longest = 1000) {
    return LoadData({{file}, budget, longest}, &tokenizer_, 262);
  }
  void ExpectError(const std::string& name, const std::string& content, const std::string& part) {
    const std::string error = ErrorOf<InputError>([&] { Load(Write(name, content)); });
    EXPECT_TRUE(Says(error, part));
    EXPECT_TRUE(Says(error, name));
  }

  std::filesystem::path folder_ = TestScratch("data");
  Tokenizer tokenizer_ = LoadTokenizer(TinyTokenizerJson(), "data-tokenizer");
};

TEST_F(DataSource, RowsOfAllKinds) {
  const DataSet data = Load(Write("rows.jsonl",
                                  "\xEF\xBB\xBF{\"text\": \"abc\", \"id\": 7}\r\n"
                                  "\n  \t\r\n"
                                  "{\"input_ids\": [5, 261]}\n"
                                  "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}]}"));
  ASSERT_EQ(data.documents.size(), 3u);
  EXPECT_EQ(data.documents[0].origin, "rows.jsonl:1");
  EXPECT_EQ(data.documents[0].ids, Ids{257});
  EXPECT_EQ(data.documents[1].origin, "rows.jsonl:4");
  EXPECT_EQ(data.documents[1].ids, (Ids{5, 261}));
  EXPECT_EQ(data.documents[2].origin, "rows.jsonl:5");
  EXPECT_EQ(data.documents[2].ids, (Ids{260, 'u', 's', 'e', 'r', '\n', 256, 261, '\n'}));
  EXPECT_EQ(data.chat_format, "chatml");
  EXPECT_EQ(data.name, "rows.jsonl");
  EXPECT_EQ(data.source_digests,
            std::vector<std::string>{DigestFile(folder_ / "rows.jsonl").sha256});
}

TEST_F(DataSource, ExtensionOrContentDecides) {
  EXPECT_EQ(Load(Write("a.txt", "{\"text\": 1}")).documents.size(), 1u);
  EXPECT_EQ(Load(Write("a.md", "x\n\ny\n")).documents[0].ids, (Ids{'x', '\n', '\n', 'y', '\n'}));
  EXPECT_EQ(Load(Write("plain", "x\ny")).documents.size(), 1u);
  EXPECT_EQ(Load(Write("rows", "{\"text\": \"x\"}\n{\"text\": \"y\"}")).documents.size(), 2u);
  const DataSet array = Load(Write("a.json", "[{\"text\": \"x\"},\n {\"text\": \"y\"}]"));
  ASSERT_EQ(array.documents.size(), 2u);
  EXPECT_EQ(array.documents[1].origin, "a.json[1]");
  EXPECT_EQ(array.chat_format, "none");
}

TEST_F(DataSource, MalformedRowsNameFileAndLine) {
  ExpectError("a.jsonl", "{\"text\": \"x\"}\n\n{\"text\": }\n", "a.jsonl:3");
  ExpectError("b.jsonl", "{\"prompt\": \"x\"}", "found \"prompt\"");
  ExpectError("c.jsonl", "{\"text\": \"x\", \"input_ids\": [1]}", "exactly one of");
  ExpectError("c2.jsonl", "{\"messages\": [], \"input_ids\": [1]}",
              "has both \"input_ids\" and \"messages\"");
  ExpectError("d.jsonl", "{}", "an empty object");
  ExpectError("e.jsonl", "[1]", "e.jsonl[0]");
  ExpectError("f.jsonl", "{\"text\": \"x\"}\n3\n", "f.jsonl:2");
  ExpectError("g.jsonl", "{\"text\": 5}", "g.jsonl:1");
  ExpectError("h.jsonl", "{\"text\": \"x\"}\n{\"text\": \"\xFF\"}\n", "h.jsonl:2");
  ExpectError("i.txt", "one\ntwo\n\xC3\x28", "i.txt:3");
  ExpectError("j.jsonl", "{\"messages\": \"hi\"}", "messages");
  ExpectError("k.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": 1}]}", "messages[0]");
  ExpectError("l.jsonl", "{\"messages\": [{\"role\": \"user\"}]}", "content");
}

TEST_F(DataSource, PaddingIsLeftOut) {
  const DataSet clean =
      Load(Write("clean.jsonl", "{\"input_ids\": [5, 6, 7]}\n{\"input_ids\": [8]}"));
  const DataSet padded = Load(
      Write("padded.jsonl", R"({"input_ids": [0, 0, 5, 6, 7], "attention_mask": [0, 0, 1, 1, 1]})"
                            "\n"
                            R"({"input_ids": [0, 0], "attention_mask": [0, 0]})"
                            "\n"
                            R"({"input_ids": [0, 8, 0], "attention_mask": [false, true, false]})"));
  ASSERT_EQ(padded.documents.size(), 2u);
  EXPECT_EQ(padded.digest, clean.digest);
  EXPECT_EQ(padded.documents[0].ids, clean.documents[0].ids);
  EXPECT_EQ(padded.counts.tokens_sent, 4);
  EXPECT_EQ(padded.counts.padding, 6);
  EXPECT_FALSE(padded.masked());
  const DataSet inside = Load(
      Write("inside.jsonl", R"({"input_ids": [5, 0, 6, 7, 0], "attention_mask": [1, 0, 1, 1, 0],)"
                            R"( "loss_mask": [1, 1, 0, 1, 1], "labels": [5, 0, 6, 7, -100]})"));
  EXPECT_EQ(inside.documents[0].ids, (Ids{5, 6, 7}));
  EXPECT_EQ(inside.documents[0].counted, (std::vector<uint8_t>{1, 0, 1}));
}

TEST_F(DataSource, MasksSayWhichQueriesCount) {
  const auto counted = [&](const std::string& columns) {
    return Load(Write("rows.jsonl", R"({"input_ids": [5, 6, 7], )" + columns + "}"))
        .documents[0]
        .counted;
  };
  using Counted = std::vector<uint8_t>;
  EXPECT_EQ(counted(R"("labels": [-100, 6, 7])"), (Counted{0, 1, 1}));
  EXPECT_EQ(counted(R"("loss_mask": [0, 0, 1])"), (Counted{0, 0, 1}));
  EXPECT_EQ(counted(R"("loss_mask": [0, 1, 1], "labels": [5, 6, -100])"), (Counted{0, 1, 0}));
  EXPECT_EQ(counted(R"("loss_mask": [1, 1, 1], "labels": null)"), Counted());
  const std::string row = R"({"input_ids": [5, 6, 7], "loss_mask": [1, 1, 0]})";
  const DataSet cut = LoadData({{Write("cut.jsonl", row)}, 2, 2}, &tokenizer_, 262);
  EXPECT_FALSE(cut.masked());  // the masked token is cut off
  EXPECT_EQ(cut.digest, DataDigest({{"", {5, 6}}}));
  const DataSet whole = Load(Write("whole.jsonl", row));
  EXPECT_TRUE(whole.masked());
  EXPECT_EQ(whole.counted_queries(), 2);
  EXPECT_NE(whole.digest, DataDigest({{"", {5, 6, 7}}}));
}

TEST_F(DataSource, OtherMasksAreRefused) {
  const auto refused = [&](const std::string& columns, const std::string& part) {
    ExpectError("rows.jsonl", R"({"input_ids": [5, 6], )" + columns + "}", part);
  };
  refused(R"("attention_mask": [1])", "has 1 elements, expected one for each of 2 input_ids");
  refused(R"("attention_mask": [1, 2])", "attention_mask[1] is 2, expected 0 or 1");
  refused(R"("attention_mask": [1, 0.0])", "attention_mask[1] must be an integer");
  refused(R"("attention_mask": [[1, 1]])", "has 1 elements");
  refused(R"("attention_mask": 1)", "must be a list");
  refused(R"("loss_mask": [0.5, 1])", "loss_mask[0] must be an integer");
  refused(R"("loss_mask": [1, -1])", "loss_mask[1] is -1");
  refused(R"("labels": [5, -1])", "labels[1] is -1, expected a token id, or -100");
  refused(R"("labels": [5, "x"])", "labels[1] must be an integer");
  refused(R"("labels": [-100, -100])", "loss_mask or labels exclude all");
  refused(R"("attention_mask": [0, 0])", "all empty or masked");
  ExpectError("text.jsonl", R"({"text": "x", "attention_mask": [1]})", "needs \"input_ids\"");
  EXPECT_EQ(Load(Write("class.jsonl", R"({"text": "x", "labels": 1})")).documents.size(), 1u);
}

TEST_F(DataSource, NullRowsAreLeftOutAndCounted) {
  const DataSet data = Load(Write("rows.jsonl",
                                  "{\"text\": null}\n{\"text\": \"abc\", \"messages\": null}\n"
                                  "{\"messages\": null, \"input_ids\": null}"));
  EXPECT_EQ(data.documents.size(), 1u);
  EXPECT_EQ(data.counts.rows_null, 2);
  EXPECT_EQ(data.counts.documents_sent, 1);
  ExpectError("none.jsonl", "{\"text\": null}", "1 rows that are null");
  ExpectError("other.jsonl", "{\"other\": null}", "expected one of");
  ExpectError("prompt.jsonl", "{\"text\": null, \"prompt\": \"x\"}", "expected one of");
}

TEST_F(DataSource, PackedFilesAreRead) {
  OSCAR_PACK_OR_SKIP(pack, "public_reports/12-unclear-messages");
  const DataSet data = Load(pack / "rows.jsonl.gz");
  EXPECT_EQ(tokenizer_.Decode(data.documents.at(0).ids, false), "hello");
  EXPECT_EQ(data.documents[0].origin, "rows.jsonl.gz:1");
  EXPECT_EQ(data.source_digests[0], DigestFile(pack / "rows.jsonl.gz").sha256);
}

TEST_F(DataSource, OtherFormatsAreNamed) {
  ExpectError("a.parquet", std::string("PAR1\x15\x04\xFF") + "PAR1", "from_parquet('");
  ExpectError("a.arrow", "ARROW1\xFF", "from_file('");
  ExpectError("a.jsonl.bz2", "BZh9\xFF", "compressed with bzip2; decompress it");
  ExpectError("a.zip", "PK\x03\x04\xFF", "compressed with zip");
  ExpectError("a.jsonl.gz", "\x1F\x8B\x08", "damaged gzip data");
  EXPECT_EQ(Load(Write("BZh", "BZh is three letters")).documents.size(), 1u);
}

TEST_F(DataSource, InstructionsAreJoined) {
  const auto text = [&](const std::string& row) {
    return tokenizer_.Decode(Load(Write("rows.jsonl", row)).documents.at(0).ids, false);
  };
  EXPECT_EQ(text(R"({"instruction": "add", "input": "1 2", "output": "3"})"),
            "<|im_start|>user\nadd\n1 2<|im_end|>\n<|im_start|>assistant\n3<|im_end|>\n");
  EXPECT_EQ(text(R"({"instruction": "hi", "input": "", "output": "yo", "system": "s"})"),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\nyo<|im_end|>\n");
  EXPECT_EQ(text(R"({"instruction": "hi", "context": "c", "response": "yo"})"),
            "<|im_start|>user\nhi\nc<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n");
  EXPECT_EQ(text(R"({"instruction": "hi", "output": "yo", "text": "as joined"})"), "as joined");
  ExpectError("a.jsonl", R"({"instruction": "hi"})", "has no answer");
  ExpectError("b.jsonl", R"({"instruction": "hi", "input": 3, "output": "x"})",
              "\"input\" must be");
  nlohmann::json json = TinyTokenizerJson();
  json["added_tokens"].erase(1);  // no chat tokens: as for the data set tatsu-lab/alpaca
  json["added_tokens"].erase(0);
  const Tokenizer plain = LoadTokenizer(json, "no-chats");
  const DataSet data = LoadData(
      {{Write("c.jsonl", R"({"instruction": "add", "input": "1 2", "output": "3"})")}, 999, 999},
      &plain, 262);
  EXPECT_EQ(plain.Decode(data.documents.at(0).ids, false),
            "Below is an instruction that describes a task, paired with an input that provides "
            "further context. Write a response that appropriately completes the request.\n\n"
            "### Instruction:\nadd\n\n### Input:\n1 2\n\n### Response:\n3");
}

TEST_F(DataSource, ATextThatBeginsWithTheBosHasItOnce) {
  nlohmann::json json = TinyTokenizerJson();
  const std::string bos = json["added_tokens"][0]["content"];
  const int32_t id = json["added_tokens"][0]["id"];
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", bos}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", nlohmann::json::array()},
      {"special_tokens", {{bos, {{"id", bos}, {"ids", {id}}, {"tokens", {bos}}}}}}};
  const Tokenizer tokenizer = LoadTokenizer(json, "with-bos");
  const auto file = Write("rows.jsonl", nlohmann::json({{"text", bos + "abc"}}).dump() + "\n" +
                                            nlohmann::json({{"text", "abc"}}).dump());
  const DataSet data = LoadData({{file}, 99, 99}, &tokenizer, 262);
  EXPECT_EQ(data.documents.at(0).ids, (Ids{id, 257}));
  EXPECT_EQ(data.documents.at(1).ids, (Ids{id, 257}));
  EXPECT_EQ(data.counts.beginnings_left_out, 1);
}

TEST_F(DataSource, APublicTextWithTheBosHasItOnce) {
  OSCAR_PACK_OR_SKIP(pack, "public_reports/08-double-bos");
  const Tokenizer tokenizer = Tokenizer::Load(pack / "tokenizer.json");
  const DataSet data = LoadData({{pack / "x.jsonl"}, 99, 99}, &tokenizer, 8256);
  EXPECT_EQ(data.documents.at(0).ids, (Ids{8192, 6891, 1462}));
  EXPECT_EQ(data.counts.beginnings_left_out, 1);
}

TEST_F(DataSource, IdsOutsideTheVocabularyAreErrors) {
  ExpectError("a.jsonl", "{\"input_ids\": [262]}", "expected an id in [0, 262)");
  ExpectError("b.jsonl", "{\"input_ids\": [-1]}", "has id -1");
  ExpectError("c.jsonl", "{\"input_ids\": [4294967296]}", "has id 4294967296");
  ExpectError("d.jsonl", "{\"input_ids\": [18446744073709551615]}", "input_ids[0]");
  ExpectError("e.jsonl", "{\"input_ids\": [1.5]}", "input_ids[0]");
  ExpectError("f.jsonl", "{\"input_ids\": \"1\"}", "list of integers");
  const auto file = Write("g.jsonl", "{\"text\": \"abc\"}");
  EXPECT_THROW(LoadData({{file}, 10, 10}, &tokenizer_, 257), InputError);  // the id of "abc" is 257
}

TEST_F(DataSource, TokenizerIsNeededForTextOnly) {
  const auto ids = Write("ids.jsonl", "{\"input_ids\": [1, 2]}");
  EXPECT_EQ(LoadData({{ids}, 10, 10}, nullptr, 3).documents[0].ids, (Ids{1, 2}));
  const auto text = Write("text.jsonl", "{\"text\": \"x\"}");
  EXPECT_THROW(LoadData({{text}, 10, 10}, nullptr, 262), InputError);
  EXPECT_THROW(LoadData({}, nullptr, 262), InputError);
}

TEST_F(DataSource, ChatNeedsTheTokensOfChatMl) {
  nlohmann::json json = TinyTokenizerJson();
  json["added_tokens"].erase(1);
  const Tokenizer plain = LoadTokenizer(json, "no-chat");
  const auto file = Write("m.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     LoadData({{file}, 10, 10}, &plain, 262);
                   }),
                   "need a chat template, but the model has none"));
}

TEST_F(DataSource, BudgetKeepsDocumentsWhole) {
  const auto file =
      Write("b.jsonl",
            "{\"input_ids\": [1,1,1,1]}\n{\"text\": \"\"}\n"
            "{\"input_ids\": [2,2,2,2,2,2,2,2]}\n"  // truncated to 5; dropped at budget 8
            "{\"input_ids\": [3,3,3]}\n{\"input_ids\": []}\n{\"input_ids\": [4,4]}\n");
  const DataSet data = Load(file, /*budget=*/8, /*longest=*/5);
  ASSERT_EQ(data.documents.size(), 2u);
  EXPECT_EQ(data.documents[1].origin, "b.jsonl:4");
  EXPECT_EQ(data.counts, (DataCounts{6, 2, 0, 4, 17, 7, 0, 10}));
  const DataSet cut = Load(file, /*budget=*/9, /*longest=*/5);
  EXPECT_EQ(cut.counts, (DataCounts{6, 2, 1, 4, 17, 9, 3, 5}));
}

TEST_F(DataSource, FirstDocumentIsTruncatedToTheBudget) {
  const auto file =
      Write("f.jsonl", "{\"text\": \"\"}\n{\"input_ids\": [1,1,1,1]}\n{\"text\": \"x\"}\n");
  EXPECT_EQ(Load(file, 3).counts, (DataCounts{3, 1, 1, 2, 5, 3, 1, 1}));
}

// A long plain-text file is used completely and not cut at the end of the first sequence.
TEST_F(DataSource, PlainTextGoesOnInAnotherDocument) {
  const auto file = Write("long.txt", "0123456789");
  const DataSet data = Load(file, /*budget=*/100, /*longest=*/4);
  ASSERT_EQ(data.documents.size(), 3u);
  EXPECT_EQ(data.documents[0].origin, "long.txt#1");
  EXPECT_EQ(data.documents[1].ids, (Ids{'4', '5', '6', '7'}));
  EXPECT_EQ(data.documents[2].ids, (Ids{'8', '9'}));
  EXPECT_EQ(data.counts, (DataCounts{3, 3, 0, 0, 10, 10, 0, 0}));
  // The remaining budget truncates the last sequence.
  const DataSet cut = Load(file, /*budget=*/6, /*longest=*/4);
  EXPECT_EQ(cut.documents[1].ids, (Ids{'4', '5'}));
  EXPECT_EQ(cut.counts, (DataCounts{3, 2, 1, 1, 10, 6, 2, 2}));
  // A row of a .jsonl file stays one document, and so does a file that fits into one sequence.
  const auto row = Write("row.jsonl", "{\"text\": \"0123456789\"}\n");
  EXPECT_EQ(Load(row, 100, 4).counts, (DataCounts{1, 1, 1, 0, 10, 4, 6, 0}));
  EXPECT_EQ(Load(file, 100, 10).documents[0].origin, "long.txt");
}

TEST_F(DataSource, EachChunkBeginsAsATextDoes) {
  nlohmann::json json = TinyTokenizerJson();
  const nlohmann::json begin = {{"SpecialToken", {{"id", "<|im_start|>"}, {"type_id", 0}}}};
  const nlohmann::json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {begin, text}},
      {"pair", {begin, text}},
      {"special_tokens",
       {{"<|im_start|>", {{"id", "<|im_start|>"}, {"ids", {260}}, {"tokens", {"<|im_start|>"}}}}}}};
  const Tokenizer tokenizer = LoadTokenizer(json, "data-bos-tokenizer");
  const DataSet data = LoadData({{Write("bos.txt", "01234")}, 100, 3}, &tokenizer, 262);
  ASSERT_EQ(data.documents.size(), 3u);
  EXPECT_EQ(data.documents[0].ids, (Ids{260, '0', '1'}));
  EXPECT_EQ(data.documents[1].ids, (Ids{260, '2', '3'}));
  EXPECT_EQ(data.documents[2].ids, (Ids{260, '4'}));
}

TEST_F(DataSource, NothingToUseIsAnError) {
  ExpectError("e.jsonl", "{\"text\": \"\"}\n", "no tokens");
  ExpectError("f.jsonl", "", "no tokens");
  EXPECT_THROW(Load(Write("g.jsonl", "{\"text\": \"x\"}"), 0), UsageError);
  EXPECT_THROW(Load(folder_ / "missing.jsonl"), InputError);
}

TEST_F(DataSource, DigestCoversIdsAndBoundaries) {
  // The digest was computed with Python's hashlib and struct.pack("<q...i").
  EXPECT_EQ(DataDigest({{"a", {1, 2}}, {"b", {3}}}),
            "9e82076552354690cf20c4a6740ce176ee660171d97998cb3f37235d095e0a4b");
  EXPECT_NE(DataDigest({{"a", {1, 2}}, {"b", {3}}}), DataDigest({{"a", {1}}, {"b", {2, 3}}}));
  EXPECT_EQ(DataDigest({{"a", {1, 2}}}), DataDigest({{"z", {1, 2}}}));
}

TEST_F(DataSource, EveryTokenIsAccountedFor) {
  EXPECT_TRUE(rc::check("sent = used + truncated + dropped", [&] {
    const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 30));
    const auto budget = *rc::gen::inRange<int64_t>(1, 80);
    const auto longest = *rc::gen::inRange<int64_t>(1, 25);
    RC_PRE(std::any_of(lengths.begin(), lengths.end(), [](int n) { return n > 0; }));
    std::string rows;
    int64_t sent = 0;
    for (const int n : lengths) {
      rows += nlohmann::json{{"input_ids", Ids(static_cast<size_t>(n), 1)}}.dump() + "\n";
      sent += n;
    }
    const DataSet data = Load(Write("p.jsonl", rows), budget, longest);
    const DataCounts& n = data.counts;
    int64_t used = 0;
    for (const Document& document : data.documents) {
      RC_ASSERT(static_cast<int64_t>(document.ids.size()) <= longest);
      used += static_cast<int64_t>(document.ids.size());
    }
    RC_ASSERT(n.tokens_sent == sent);
    RC_ASSERT(n.tokens_used == used);
    RC_ASSERT(used <= budget);
    RC_ASSERT(n.tokens_sent == n.tokens_used + n.tokens_truncated + n.tokens_dropped);
    RC_ASSERT(n.documents_sent == static_cast<int64_t>(lengths.size()));
    RC_ASSERT(n.documents_used == static_cast<int64_t>(data.documents.size()));
    RC_ASSERT(n.documents_sent == n.documents_used + n.documents_dropped);
    RC_ASSERT(n.documents_truncated <= n.documents_used);
  }));
}

}  // namespace
}  // namespace oscar
