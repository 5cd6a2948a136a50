// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests steps of the tokenizer pipeline on examples worked out by hand, and BPE against its
// definition.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>

#include "capture/text/tokenizer/normalizer.h"
#include "capture/text/tokenizer/pre_tokenizer.h"
#include "tests/capture/text/tiny_tokenizer.h"

namespace oscar {
namespace {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

Strings Pieces(const Json& step, const std::string& text) {
  const Json sequence = {
      {"type", "Sequence"},
      {"pretokenizers",
       {step, {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  const PieceList list = PreTokenize(MakePreTokenizers(sequence, "test"), text);
  Strings pieces;
  for (const auto& piece : list.pieces) {
    pieces.push_back(list.text.substr(piece.begin, piece.end - piece.begin));
  }
  return pieces;
}

Json Split(const std::string& behavior, bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"String", "-"}}},
          {"behavior", behavior},
          {"invert", invert}};
}

// These are the examples of SplitDelimiterBehavior in Hugging Face's documentation.
TEST(PreTokenizer, SplitBehaviors) {
  const std::string text = "the-final--countdown";
  EXPECT_EQ(Pieces(Split("Removed"), text), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(Pieces(Split("Isolated"), text), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(Pieces(Split("MergedWithPrevious"), text),
            (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(Pieces(Split("MergedWithNext"), text), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(Pieces(Split("Contiguous"), text), (Strings{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(Pieces(Split("Removed", true), text), (Strings{"-", "-", "-"}));
}

TEST(PreTokenizer, Digits) {
  const auto digits = [](bool individual) {
    return Json{{"type", "Digits"}, {"individual_digits", individual}};
  };
  EXPECT_EQ(Pieces(digits(true), "a12b٣"), (Strings{"a", "1", "2", "b", "٣"}));
  EXPECT_EQ(Pieces(digits(false), "a12b٣"), (Strings{"a", "12", "b", "٣"}));
}

TEST(PreTokenizer, ByteLevelPrefixSpaceAndPattern) {
  const Json step = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}};
  const PieceList list = PreTokenize(MakePreTokenizers(step, "test"), "it's  12");
  EXPECT_EQ(list.text, " it's  12");
  EXPECT_EQ(list.pieces.size(), 4u);  // " it", "'s", " " and " 12"
}

TEST(Normalizer, Forms) {
  const auto apply = [](const char* form, const std::string& text) {
    return Normalize(MakeNormalizers({{"type", form}}, "test"), text);
  };
  EXPECT_EQ(apply("NFC", "e\u0301 \uFB01 \u0958"), "é \uFB01 \u0915\u093C");
  EXPECT_EQ(apply("NFD", "é"), "e\u0301");
  EXPECT_EQ(apply("NFKC", "\uFB01 \u2460 e\u0301"), "fi 1 é");
  EXPECT_EQ(apply("NFKD", "\uFB01é"), "fie\u0301");
}

TEST(Bpe, LowestRankThenLeftmost) {
  const Tokenizer tokenizer = LoadTokenizer(TinyTokenizerJson(), "bpe-rank");
  EXPECT_EQ(tokenizer.Encode("abc", false), Ids{257});
  EXPECT_EQ(tokenizer.Encode("bcab", false), (Ids{258, 256}));
  EXPECT_EQ(tokenizer.Encode(" ab a", false), (Ids{' ', 256, 259}));  // ab has the lower rank
  EXPECT_EQ(tokenizer.Encode("é", false), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer.Decode(Ids{0xC3, 0xA9, 257, 999}, false), "éabc");
  EXPECT_EQ(tokenizer.vocab_size(), 262);
  EXPECT_EQ(tokenizer.TokenId("Ġa"), 259);
  EXPECT_EQ(tokenizer.TokenId("nothing"), std::nullopt);
}

TEST(Bpe, IgnoreMergesFindsWholePieces) {
  Json json = TinyTokenizerJson();
  json["model"]["vocab"]["cab"] = 300;
  EXPECT_EQ(LoadTokenizer(json, "bpe-merges").Encode("cab", false), (Ids{'c', 256}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(LoadTokenizer(json, "bpe-whole").Encode("cab", false), Ids{300});
}

// Applies the definition of BPE: while neighbours can merge, merges the pair with the lowest rank,
// and the leftmost of equals.
Ids MergeByDefinition(const std::string& text) {
  static const std::map<std::pair<int32_t, int32_t>, std::pair<int, int32_t>> merges = {
      {{'a', 'b'}, {0, 256}},
      {{256, 'c'}, {1, 257}},
      {{'b', 'c'}, {2, 258}},
      {{' ', 'a'}, {3, 259}},
      {{'c', 'c'}, {4, 300}}};
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    std::pair<int, size_t> best = {1 << 20, 0};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found != merges.end()) best = std::min(best, {found->second.first, i});
    }
    if (best.first == 1 << 20) return ids;
    const size_t i = best.second;
    ids[i] = merges.at({ids[i], ids[i + 1]}).second;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(i) + 1);
  }
}

TEST(Bpe, HeapEqualsDefinition) {
  Json json = TinyTokenizerJson();
  json["model"]["vocab"]["cc"] = 300;  // in "ccc", the left two merge
  json["model"]["merges"].push_back(Json::array({"c", "c"}));
  const Tokenizer tokenizer = LoadTokenizer(json, "bpe-definition");
  EXPECT_TRUE(rc::check("BPE equals its definition", [&] {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c', ' '));
    RC_ASSERT(tokenizer.Encode(text, false) == MergeByDefinition(text));
  }));
  EXPECT_TRUE(rc::check("decoding inverts encoding", [&] {
    const auto points = *rc::gen::container<std::u32string>(rc::gen::inRange<char32_t>(0, 0xD800));
    std::string text;
    for (const char32_t c : points) {
      if (c < 0x80) {
        text += static_cast<char>(c);
      } else if (c < 0x800) {
        text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
      } else {
        text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                 static_cast<char>(0x80 | (c & 0x3F))};
      }
    }
    RC_ASSERT(tokenizer.Decode(tokenizer.Encode(text, false), false) == text);
  }));
}

TEST(AddedTokens, FlagsTakeWhiteSpaceAndWordsAlong) {
  Json json = TinyTokenizerJson();
  for (const auto& [id, content, flag] :
       {std::tuple{270, "<L>", "lstrip"}, {271, "<R>", "rstrip"}, {272, "cat", "single_word"}}) {
    json["added_tokens"].push_back(AddedTokenJson(id, content));
    json["added_tokens"].back()[flag] = true;
  }
  json["added_tokens"].push_back(AddedTokenJson(273, "<LL"));
  json["added_tokens"].push_back(AddedTokenJson(274, "<L"));
  const Tokenizer tokenizer = LoadTokenizer(json, "added");
  EXPECT_EQ(tokenizer.Encode("x \n<L> y", false), (Ids{'x', 270, ' ', 'y'}));
  EXPECT_EQ(tokenizer.Encode("x <R> \u3000y", false), (Ids{'x', ' ', 271, 'y'}));
  EXPECT_EQ(tokenizer.Encode("cat.", false), (Ids{272, '.'}));
  EXPECT_EQ(tokenizer.Encode("cats", false), (Ids{'c', 'a', 't', 's'}));
  EXPECT_EQ(tokenizer.Encode("<LL>", false), (Ids{273, '>'}));  // the longest match
  EXPECT_EQ(tokenizer.Decode(Ids{270, 'x'}, true), "x");
}

TEST(PostProcessor, TemplateSurroundsTheText) {
  Json json = TinyTokenizerJson();
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", Json::array()},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {260, 261}}, {"tokens", {"x", "y"}}}}}}};
  const Tokenizer tokenizer = LoadTokenizer(json, "template");
  EXPECT_EQ(tokenizer.Encode("abc", true), (Ids{260, 261, 257}));
  EXPECT_EQ(tokenizer.Encode("abc", false), Ids{257});
}

TEST(PostProcessor, TemplatesMayNotMultiplyTheTextWithoutEnd) {
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json twice = {{"type", "TemplateProcessing"}, {"single", {text, text}}};
  const auto tokens = [&](size_t times) {
    Json json = TinyTokenizerJson();
    json["post_processor"] = {{"type", "Sequence"}, {"processors", Json(times, twice)}};
    return LoadTokenizer(json, "template").Encode("abc", true).size();
  };
  EXPECT_EQ(tokens(6), 64u);
  EXPECT_THROW(tokens(9), InputError);
  EXPECT_THROW(tokens(60), InputError);
}

}  // namespace
}  // namespace oscar
