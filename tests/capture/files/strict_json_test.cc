// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests which texts are refused, and at which byte: offsets in messages are part of the contract.
#include "capture/files/strict_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "capture/files/atomic_file.h"
#include "capture/files/json_text.h"
#include "linalg/base/error.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using namespace std::string_literals;

// Returns the value that a reader parses from a text, or the message with which it refuses the
// text.
template <typename Read>
std::pair<std::string, std::string> MadeOf(const Read& read) {
  try {
    return {read().dump(), ""};
  } catch (const InputError& error) {
    return {"", error.what()};
  }
}

// Returns the message with which a text is refused, or "". Expects the same from both readers.
std::string Refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto tree = MadeOf([&] { return ParseStrictJson(text, "source", limits); });
  EXPECT_EQ(tree, MadeOf([&] { return ToJson(JsonText(text, "source", limits).root()); })) << text;
  return tree.second;
}

TEST(StrictJson, ParsesEveryKindOfValue) {
  const Json json = ParseStrictJson(
      " {\"a\": [1, -2, 2.5, true, false, null, \"\\u00e9\\ud83d\\ude00\"], \"b\": {}}\n",
      "source");
  EXPECT_EQ(json.dump(), "{\"a\":[1,-2,2.5,true,false,null,\"é😀\"],\"b\":{}}");
  EXPECT_EQ(ParseStrictJson("7", "source"), 7);
}

TEST(StrictJson, RefusesAKeyGivenTwiceWithItsOffset) {
  const std::string message = Refusal("{\"a\":1,\"\\u0061\":2}");
  EXPECT_TRUE(Says(message, "source: "));
  EXPECT_TRUE(Says(message, "byte 15: key \"a\" is given twice"));
  EXPECT_EQ(Refusal("[{\"a\":1},{\"a\":2},{\"b\":{\"a\":1},\"a\":2}]"), "");
  EXPECT_NE(Refusal("{\"b\":{\"a\":1,\"a\":1}}"), "");
}

TEST(StrictJson, RefusesWhatTheGrammarDoesNotHave) {
  for (const std::string& text : {""s, " "s, "// c\n1"s, "\"\n\""s, "\xEF\xBB\xBF{}"s, "{}\0"s,
                                  "{\0}"s, "\"\0\""s, "{}\xC2\xA0"s, "[1]\f"s, "[1] 2"s})
    EXPECT_NE(Refusal(text), "") << text;
  for (const std::string& text :
       Words(R"({ [1,] {"a":1,} {a:1} 'a' {}x /**/1 NaN [Infinity] -Infinity nan 01 +1 .5 1. 0x10 1e
                "\x41" "a tru "\ud800" "\udc00" 1e400)"))
    EXPECT_NE(Refusal(text), "") << text;
  EXPECT_TRUE(Says(Refusal("[1, x]"), "byte 5"));
}

TEST(StrictJson, NamesWhatPythonWritesInstead) {
  for (const char* text : {"[0.0, Infinity]", "{\"a\": -Infinity}", "{\"a\": NaN, \"b\": 1}"})
    EXPECT_TRUE(Says(Refusal(text), "Python writes Infinity and NaN"));
  EXPECT_FALSE(Says(Refusal("[nul]"), "Python"));
}

TEST(StrictJson, RefusesBytesThatAreNotUtf8) {
  for (const char* bytes : {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                            "\xFF", "\xE2\x82"}) {
    EXPECT_NE(Refusal("\""s + bytes + "\""), "") << bytes;
  }
}

TEST(StrictJson, LimitsDepthWithoutUsingTheStack) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(Refusal(nested(64)), "");
  EXPECT_TRUE(Says(Refusal(nested(65)), "byte 65: nested deeper than 64 levels"));
  EXPECT_NE(Refusal(nested(2'000'000)), "");
  EXPECT_NE(Refusal(std::string(2'000'000, '[')), "");
  EXPECT_EQ(Refusal("{\"a\":{\"a\":1}}", {.max_depth = 2}), "");
  EXPECT_NE(Refusal("{\"a\":{\"a\":[]}}", {.max_depth = 2}), "");
}

TEST(StrictJson, LimitsBytesAndValues) {
  EXPECT_NE(Refusal("[1, 2, 3]", {.max_bytes = 8}), "");
  EXPECT_EQ(Refusal("[1, 2, 3]", {.max_bytes = 9}), "");
  EXPECT_EQ(Refusal("[1, 2, 3]", {.max_values = 4}), "");
  EXPECT_NE(Refusal("[1, 2, 3]", {.max_values = 3}), "");
}

TEST(StrictJson, DamagedMessagesStayReadable) {
  const std::string message = Refusal("[\"" + std::string(100'000, 'a') + "\" \x1b");
  EXPECT_LT(message.size(), 600u);
  EXPECT_EQ(message.find('\x1b'), message.npos);
}

// Returns `text` if ParseStrictJson and Json::parse disagree about it, or "".
std::string ReadsOtherwise(const std::string& text) {
  const Json expected = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    const Json json = ParseStrictJson(text, "source");
    return json.type() == expected.type() && json.dump() == expected.dump() ? "" : text;
  } catch (const InputError&) {
    return expected.is_discarded() ? "" : text;
  }
}

TEST(StrictJson, ReadsNumbersAndTextAsNlohmannDoes) {
  std::vector<std::string> texts =
      Words(R"(0 -0 -0.0 01 - -a 1. .5 1.5 1e5 1E+05 1e 1e- +1 18446744073709551615
               18446744073709551616 -9223372036854775808 -9223372036854775809 1e308 1e309 -1e999
               1e-400 4.9e-324 2.5e-324 0.1000000000000000055511151231257827021181583404541015625
               123456789012345678901e-5 1.7976931348623158e308 1.7976931348623159e308
               "\u00e9\ud83d\ude00" "\ud83d" "\"\\\/\b\f\n\r\t" "\a" "\ "é😀" {,"a":1} {"a":1,,}
               [,1] {"a":} [} {] [1} {"a":1] ] tru truex nullnull [true,false,null])");
  for (const char* text : {"\"\x7f\"", "\"\xC3\"", "\"a\tb\"", "[1 2]", "{\"a\" 1}", "1 "})
    texts.emplace_back(text);
  for (const std::string& text : texts) {
    EXPECT_EQ(ReadsOtherwise(text), "");
    Refusal(text);
  }
}

RC_GTEST_PROP(StrictJson, ReadsDamagedTextAsNlohmannDoes, ()) {
  std::string text = Json({{"a", {1, -2, 2.5, 1e300, true, nullptr}},
                           {"b\n\"", {{"c", "é\\"}, {"d", Json::object()}}},
                           {"e", Json::array()}})
                         .dump(*rc::gen::inRange(-1, 2));
  for (int changes = *rc::gen::inRange(1, 4); changes > 0; --changes) {
    const auto at = static_cast<size_t>(*rc::gen::inRange<int>(0, static_cast<int>(text.size())));
    text[at] = *rc::gen::elementOf("{}[]:,\"\\0123456789.eE+-truefalsn u\n\xC3\x80"s);
  }
  RC_ASSERT(ReadsOtherwise(text) == "" || Refusal(text).find("given twice") != text.npos);
}

TEST(JsonText, HasItsKeysInOrder) {
  constexpr std::string_view kText = R"({"b":{"z":1,"y":-0.0},"a":[18446744073709551615]})";
  const JsonText text(kText, "source");
  EXPECT_EQ(simdjson::minify(text.root()),
            "{\"a\":[18446744073709551615],\"b\":{\"y\":-0.0,\"z\":1}}");
  EXPECT_FALSE(FindMember(text.root(), "c"));
  EXPECT_EQ(ToJson(FindMember(text.root(), "a")->value).dump(), "[18446744073709551615]");
}

// simdjson does not parse texts that may contain the number -0. This one has it as a number and in
// strings.
TEST(JsonText, HoldsTextsThatLookLikeMinusZero) {
  constexpr std::string_view kText = R"({"a-0 ":"part-0, of 2","b":-0})";
  const auto check = [](const JsonText& text) {
    EXPECT_EQ(ToJson(FindMember(text.root(), "a-0 ")->value), "part-0, of 2");
    EXPECT_EQ(ToJson(FindMember(text.root(), "b")->value), 0);
  };
  check(JsonText(kText, "source"));
  check(JsonText(Json::parse(kText), "source"));
}

TEST(JsonText, NamesTheNumberThatIsNotFinite) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto refusal = [](const Json& value) {
    return MadeOf([&] { return ToJson(JsonText(value, "source").root()); }).second;
  };
  EXPECT_EQ(refusal({{"a/b", {1.0, kInf}}}),
            "source: /a~1b/1: expected a finite number, found NaN or Inf");
  EXPECT_EQ(refusal({{"a", {1.0, "\xC3"}}}), "");  // not UTF-8, but accepted
}

TEST(StrictJson, GivesEachRowOnceWhereALaterOneIsReadSlowly) {
  std::vector<int> rows;
  const JsonRows each{"rows", [&](Json&& row) { rows.push_back(row.at("n").get<int>()); }};
  ParseStrictJson("{\"rows\":[{\"n\":1},{\"n\":2},{\"n\":3,\"t\":\"\\u00e9\"},{\"n\":4}]}",
                  "source", {}, &each);
  EXPECT_EQ(rows, (std::vector<int>{1, 2, 3, 4}));
}

TEST(TypedAccess, TakesOnlyTheTypeAskedFor) {
  const Json json = ParseStrictJson(
      R"({"i": 3, "n": -9223372036854775808, "u": 18446744073709551615, "f": 3.0,
          "big": 1000000000000000019884624838656, "s": "x", "b": true, "null": null})",
      "config.json");
  EXPECT_EQ(JsonInt(json, "i", "config.json"), 3);
  EXPECT_EQ(JsonInt(json, "n", "config.json"), std::numeric_limits<int64_t>::min());
  for (const char* key : {"u", "f", "big", "s", "b", "null", "none"}) {
    EXPECT_THROW(JsonInt(json, key, "config.json"), InputError) << key;
  }
  EXPECT_EQ(JsonInt(json, "none", 7, "config.json"), 7);
  EXPECT_EQ(JsonInt(json, "null", 7, "config.json"), 7);
  EXPECT_THROW(JsonInt(json, "f", 7, "config.json"), InputError);
  EXPECT_EQ(JsonDouble(json, "i", "config.json"), 3.0);
  EXPECT_EQ(JsonDouble(json, "big", "config.json"), 1e30);
  EXPECT_THROW(JsonDouble(json, "s", "config.json"), InputError);
  EXPECT_EQ(JsonDouble(json, "none", 0.5, "config.json"), 0.5);
  EXPECT_TRUE(JsonBool(json, "b", false, "config.json"));
  EXPECT_TRUE(JsonBool(json, "none", true, "config.json"));
  EXPECT_THROW(JsonBool(json, "i", false, "config.json"), InputError);
  EXPECT_EQ(JsonString(json, "s", "config.json"), "x");
  EXPECT_EQ(JsonString(json, "none", "y", "config.json"), "y");
  EXPECT_THROW(JsonString(json, "b", "config.json"), InputError);
  EXPECT_THROW(JsonMember(json["i"], "x", "config.json"), InputError);
}

TEST(TypedAccess, NamesSourceKeyAndFinding) {
  const std::string error = ErrorOf<InputError>([&] {
    JsonInt(ParseStrictJson("{\"layers\": \"many\"}", "s"), "layers", "model/config.json");
  });
  EXPECT_EQ(error, "model/config.json: \"layers\" must be a 64-bit integer, found \"many\"");
}

TEST(CanonicalJson, SortsKeysIndentsByOneAndEndsTheLine) {
  const Json json = ParseStrictJson("{\"b\":[1,2],\"a\":{\"z\":0.1,\"é\":null}}", "s");
  EXPECT_EQ(CanonicalJson(json),
            "{\n \"a\": {\n  \"z\": 0.1,\n  \"é\": null\n },\n \"b\": [\n  1,\n  2\n ]\n}\n");
  EXPECT_DEATH(CanonicalJson(Json{{"x", std::nan("")}}), "bug in oscar");
  EXPECT_THROW(CanonicalJson(Json("\xff")), InputError);
}

TEST(CanonicalJson, RoundTripsDoublesExactly) {
  EXPECT_TRUE(rc::check("every finite double survives", [](double value) {
    RC_PRE(std::isfinite(value));
    const Json back = ParseStrictJson(CanonicalJson(Json(value)), "s");
    RC_ASSERT(back.get<double>() == value);
  }));
}

TEST(ReadConfigJson, InfinityIsAString) {
  const std::filesystem::path file = TestScratch("infinity") / "config.json";
  std::ofstream(file) << R"({"limit": [0.0, Infinity, -Infinity, NaN], "text": "\"Infinity"})";
  const Json config = ReadConfigJson(file);
  EXPECT_EQ(config["limit"], Json({0.0, "Infinity", "-Infinity", "NaN"}));
  EXPECT_EQ(config["text"], "\"Infinity");
  EXPECT_THROW(ReadJsonFile(file), InputError);
  std::ofstream(file, std::ios::trunc) << R"({"limit": Infinite})";
  EXPECT_THROW(ReadConfigJson(file), InputError);
}

TEST(ReadJsonFile, NamesTheFile) {
  const auto dir = TestScratch("json");
  WriteFileAtomically(dir / "good.json", "{\"a\": 1}");
  EXPECT_EQ(ReadJsonFile(dir / "good.json")["a"], 1);
  WriteFileAtomically(dir / "bad.json", "{");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { ReadJsonFile(dir / "bad.json"); }), "bad.json"));
  EXPECT_THROW(ReadJsonFile(dir / "none.json"), InputError);
}

TEST(StrictJson, LayerIdsDoNotWrapAround) {
  const Json ids = ParseStrictJson(R"({"a": 7, "b": 4294967296, "c": -2147483649})", "t");
  EXPECT_EQ(JsonInt32(ids, "a", "t"), 7);
  EXPECT_THROW(JsonInt32(ids, "b", "t"), InputError);
  EXPECT_THROW(JsonInt32(ids, "c", "t"), InputError);
}

}  // namespace
}  // namespace oscar
