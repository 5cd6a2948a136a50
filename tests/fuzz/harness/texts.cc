// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "capture/files/digest.h"
#include "capture/files/utf8.h"
#include "capture/text/data/data_rows.h"
#include "capture/text/tokenizer/sentencepiece.h"
#include "capture/text/tokenizer/tokenizer.h"
#include "tests/fuzz/harness/harnesses.h"
#include "tools/cli/config_file.h"

namespace oscar::fuzz {
namespace {

constexpr std::string_view kPiecesText = "Hello,  na\u00efve <s> world\n 12";

// Input: tokenizer.json, NUL, a text; or NUL, a tokenizer.model. Checks that an accepted tokenizer
// only returns ids of its vocabulary, and encodes a text twice to the same ids.
void RunTokenizer(std::string_view input) {
  const bool is_pieces = input.starts_with('\0');
  const size_t cut = std::min(input.find('\0'), input.size());
  const Tokenizer tokenizer =
      is_pieces ? Tokenizer::Of(MakeSentencePiecePipeline(
                      ParseSentencePieceModel(input.substr(1), "tokenizer.model"),
                      {.extra = nullptr, .bos = "<s>", .eos = {}}, "tokenizer.model"))
                : Tokenizer::Load(FileOf(input.substr(0, cut), "tokenizer.json"));
  const std::string_view text = is_pieces            ? kPiecesText
                                : cut < input.size() ? input.substr(cut + 1)
                                                     : "Hello, world 12";
  const std::vector<int32_t> ids = tokenizer.Encode(text, true);
  for (const int32_t id : ids) FUZZ_CHECK(id >= 0 && id < tokenizer.vocab_size());
  FUZZ_CHECK(tokenizer.Encode(text, true) == ids);
  CheckUtf8(tokenizer.Decode(ids, false));
  (void)tokenizer.Decode(ids, true);
}

// Puts the step `member` of `tokenizer` between two that each make a text seven times as long. A
// few more of these would make it too long.
Json BetweenGrowing(Json tokenizer, const char* member, const char* list) {
  const Json grow = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaa"}};
  Json steps = {grow, grow};
  if (tokenizer.contains(member) && tokenizer[member].is_object())
    steps.insert(steps.begin() + 1, tokenizer[member]);
  tokenizer[member] = {{"type", "Sequence"}, {list, steps}};
  return tokenizer;
}

// Returns a field of a protobuf message: a string or message of less than 128 bytes, or a small
// number.
std::string Field(int number, const std::string& bytes) {
  std::string tag(1, static_cast<char>((number << 3 | 2) & 0x7F));
  return tag + static_cast<char>(bytes.size()) + bytes;
}
std::string Field(int number, int value) {
  if (number < 16) return {static_cast<char>(number << 3), static_cast<char>(value)};
  return {static_cast<char>((number << 3 & 0x7F) | 0x80), static_cast<char>(number >> 4),
          static_cast<char>(value)};
}

// Returns a ModelProto with pieces of all types, settings, and a normalization map of "w" to "A".
std::string PiecesSeed(int model_type) {
  std::string model;
  const auto add = [&](const std::string& text, float score, int type) {
    const auto bits = std::bit_cast<uint32_t>(score);
    std::string piece = Field(1, text) + '\x15';
    for (int shift = 0; shift < 32; shift += 8) piece += static_cast<char>(bits >> shift);
    model += Field(1, piece + Field(3, type));
  };
  add("<unk>", 0, 2);
  add("<s>", 0, 3);
  add("lo", 0, 4);
  add("<0x0A>", 0, 6);
  const char* const pieces[] = {"\u2581", "H", "e", "l", "o", "He", "\u2581w", "w", "or", "r", "A"};
  float score = -1;
  for (const char* piece : pieces) add(piece, score--, 1);
  model += Field(2, Field(3, model_type) + Field(24, 0) + Field(35, 1));
  const uint32_t map[] = {12, 0x76 << 10, 3 << 10 | 1 << 8 | 'w', 1U << 31};  // trie bytes, trie
  model += Field(3, Field(2, std::string(reinterpret_cast<const char*>(map), sizeof map) + "A") +
                        Field(3, 1) + Field(4, 1));
  return model;
}

std::string MutateTokenizer(const std::string& input, Random& random) {
  if (!input.starts_with('\0')) return MutateJsonAndText(input, random);
  return '\0' + MutateBytes(input.substr(1), 4096, random);
}

std::vector<std::string> TokenizerSeeds() {
  const std::string added = R"("added_tokens":[{"id":7,"content":"<s>","single_word":false,)"
                            R"("lstrip":false,"rstrip":true,"normalized":false,"special":true}])";
  const std::string model =
      R"("model":{"type":"BPE","dropout":null,"unk_token":"<unk>","fuse_unk":true,)"
      R"("byte_fallback":true,"ignore_merges":false,"vocab":{"<unk>":0,"a":1,"b":2,"ab":3,)"
      R"("\u2581":4,"\u2581a":5,"<0x0A>":6},"merges":[["a","b"],["\u2581","a"]]})";
  const auto file = [&](const std::string& normalizer, const std::string& pre,
                        const std::string& post, const std::string& decoder) {
    return R"({"version":"1.0","truncation":null,"padding":null,)" + added + R"(,"normalizer":)" +
           normalizer + R"(,"pre_tokenizer":)" + pre + R"(,"post_processor":)" + post +
           R"(,"decoder":)" + decoder + "," + model + "}" + '\0' + "ab a<s> bab\n\u00e9";
  };
  std::vector<std::string> seeds = {
      file(
          R"({"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace","pattern":)"
          R"({"String":" "},"content":"\u2581"},{"type":"Prepend","prepend":"\u2581"}]})",
          "null",
          R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
          R"({"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>",)"
          R"("ids":[7],"tokens":["<s>"]}}})",
          R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},)"
          R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ",)"
          R"("start":1,"stop":0}]})"),
      file(
          R"({"type":"Sequence","normalizers":[{"type":"Strip","strip_left":true,)"
          R"("strip_right":true},{"type":"Lowercase"},{"type":"StripAccents"}]})",
          R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
          R"("(?i:'s|'t)|\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},)"
          R"("behavior":"Isolated","invert":false},{"type":"Digits","individual_digits":true},)"
          R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always","split":true}]})",
          "null", R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always"})")};
  for (const Json& row : SeedRows("tokenizers/components.jsonl"))
    seeds.push_back(row.at("tokenizer").dump() + '\0' +
                    row.at("cases").at(1).at("text").get<std::string>());
  for (const int type : {1, 2}) seeds.push_back('\0' + PiecesSeed(type));
  if (!kCampaign) return seeds;
  std::set<std::string> types;
  for (size_t i = 0, given = seeds.size(); i < given; ++i) {
    const std::string text = seeds[i];
    const Json tokenizer = Json::parse(text.substr(0, text.find('\0')));
    for (const auto& [member, list] :
         {std::pair("normalizer", "normalizers"), std::pair("decoder", "decoders")}) {
      const Json step = tokenizer.value(member, Json());
      if (!types.insert(member + (step.is_object() ? step.value("type", "") : "")).second) continue;
      const std::string grown = BetweenGrowing(tokenizer, member, list).dump();
      seeds.push_back(grown + '\0' + "aaa b\u00e9a \u2581a of   more words\n\n");
    }
  }
  return seeds;
}

// The first byte selects the file's name.
void RunRows(std::string_view input) {
  const char* names[] = {"rows.jsonl", "rows.json", "rows.txt", "rows"};
  const char* const name = names[input.empty() ? 0 : static_cast<uint8_t>(input[0]) % 4];
  const std::string_view bytes = input.substr(std::min<size_t>(1, input.size()));
  size_t rows = 0;
  const std::string digest = ReadDataRows(FileOf(bytes, name), [&](const DataRow& row) {
    ++rows;
    FUZZ_CHECK(row.origin.starts_with(name));
    if (const auto* text = std::get_if<std::string>(&row.value)) CheckUtf8(*text);
    if (const auto* chat = std::get_if<ChatRow>(&row.value)) FUZZ_CHECK(chat->messages.is_list());
  });
  FUZZ_CHECK(digest == Sha256Hex(bytes));
  FUZZ_CHECK(rows <= bytes.size() + 1);
}

std::vector<std::string> RowsSeeds() {
  const std::string chat = R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant",)"
                           R"("content":"yes"}],"tools":"[]"})";
  return {
      std::string(1, '\0') + chat + "\n" + R"({"text":"a\u2028b","n":1})" + "\r\n\n" +
          R"({"prompt":"p","response":"r"})" + "\n" + R"({"input_ids":[1,2,300]})",
      std::string(1, '\1') + "[" + chat + R"(,{"conversations":[{"from":"human","value":"x"}]}])",
      std::string(1, '\2') + "plain text\n\xC3\xA9", std::string(1, '\3') + R"({"text":"z"})"};
}

std::string MutateRows(const std::string& input, Random& random) {
  if (input.size() < 2 || random() % 3 == 0) return MutateBytes(input, 4096, random);
  const size_t begin = input.find('{'), end = std::min(input.find('\n', begin), input.size());
  if (begin == input.npos) return MutateBytes(input, 4096, random);
  return input.substr(0, begin) + MutateJson(input.substr(begin, end - begin), random) +
         input.substr(end);
}

// Checks that an accepted configuration keeps its settings if it is written with all texts in
// quotes.
void RunYaml(std::string_view input) {
  std::set<std::string> keys;
  std::string again;
  const std::vector<ConfigEntry> entries = ParseConfig(input, "c.yaml");
  for (const ConfigEntry& entry : entries) {
    FUZZ_CHECK(keys.insert(entry.key).second);
    FUZZ_CHECK(entry.list || entry.values.size() == 1);
    FUZZ_CHECK(entry.line >= 1);
    std::vector<std::string> values;
    for (const ConfigScalar& value : entry.values) {
      const bool null = value.text.empty() || value.text == "~" || value.text == "null";
      FUZZ_CHECK(value.IsNull() == (null && !value.quoted));
      if (FirstInvalidUtf8(value.text)) return;
      values.push_back(Json(value.text).dump(-1, ' ', true));
    }
    if (FirstInvalidUtf8(entry.key)) return;
    again += fmt::format("{}: {}\n", Json(entry.key).dump(-1, ' ', true),
                         entry.list ? fmt::format("[{}]", fmt::join(values, ", ")) : values[0]);
  }
  // yaml-cpp does not read back surrogate halves of characters beyond 16 bits, nor keys over 1024
  // bytes.
  if (again.find("\\u") != again.npos || again.size() > 1000) return;
  const std::vector<ConfigEntry> read = ParseConfig(again, "again.yaml");
  FUZZ_CHECK(read.size() == entries.size());
  for (size_t i = 0; i < read.size(); ++i) {
    FUZZ_CHECK(read[i].key == entries[i].key && read[i].list == entries[i].list);
    FUZZ_CHECK(read[i].values.size() == entries[i].values.size());
    for (size_t v = 0; v < read[i].values.size(); ++v)
      FUZZ_CHECK(read[i].values[v].text == entries[i].values[v].text);
  }
}

std::vector<std::string> YamlSeeds() {
  return {"# comment\nmodel: Qwen/Qwen3-8B\ntokens: 4096\nclip: [0.9, \"0.95\"]\nquiet: ~\n",
          "a:\n  - 'x'\n  - y\nb: \"\\x41\"\n"};
}

}  // namespace

const Harness kTokenizer = {"tokenizer", RunTokenizer, TokenizerSeeds, MutateTokenizer};
const Harness kRows = {"rows", RunRows, RowsSeeds, MutateRows, 4096};
const Harness kYaml = {"yaml", RunYaml, YamlSeeds, nullptr, 2048};

}  // namespace oscar::fuzz
