// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Spellings of JSON values by the productions of RFC 8259 and RFC 3629. Mutation parses inputs and
// dumps them, which leaves one spelling of each value, so readers' code for the others would be
// reached last.
#include <fmt/format.h>

#include <array>

#include "tests/fuzz/fuzz.h"

namespace oscar::fuzz {
namespace {

std::vector<std::string> Numbers() {
  std::vector<std::string> numbers = {
      "-0", "0.0", "-0.0", "1e5", "1E5", "1e+5", "1E-5", "0e0", "0E+0", "1.5e3", "1.25E-3", "1e400",
      "-1e400", "1e-400", "5e-324", "2.2250738585072011e-308", "1.7976931348623157e308",
      "18446744073709551615", "18446744073709551616", "-9223372036854775808",
      "-9223372036854775809", "9007199254740993",
      // None of these is a JSON number.
      ".5", "5.", "-", "-a", "-.5", "+1", "01", "-01", "1e", "1e+", "1ex", "1.e5", "1.x", "0x10",
      "1_000", "NaN", "Infinity", "-Infinity", "1 2"};
  std::string digits;
  for (int i = 1; i <= 21; ++i) {
    digits += static_cast<char>('0' + i % 10);
    numbers.push_back(digits);
    numbers.push_back("-" + digits);
    numbers.push_back("0." + digits);
  }
  for (int exponent = -320; exponent <= 300; exponent += 31)
    numbers.push_back(fmt::format("1.234567e{}", exponent));
  return numbers;
}

// Returns UTF-8 sequences of every kind of first byte, the same with one byte wrong or the end
// missing, and control characters.
std::vector<std::string> Characters() {
  static constexpr std::array<std::string_view, 17> kWhole = {"\x7F",
                                                              "\xC2\x80",
                                                              "\xDF\xBF",
                                                              "\xE0\xA0\x80",
                                                              "\xE1\x80\x80",
                                                              "\xEC\xBF\xBF",
                                                              "\xED\x80\x80",
                                                              "\xED\x9F\xBF",
                                                              "\xEE\x80\x80",
                                                              "\xEF\xBB\xBF",
                                                              "\xEF\xBF\xBF",
                                                              "\xF0\x90\x80\x80",
                                                              "\xF1\x80\x80\x80",
                                                              "\xF3\xBF\xBF\xBF",
                                                              "\xF4\x80\x80\x80",
                                                              "\xE2\x80\xA8",
                                                              "\xF4\x8F\xBF\xBF"};
  std::vector<std::string> characters = {
      "\x80",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x9F\xBF",
      "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
      "\xFF"};
  for (const std::string_view whole : kWhole) {
    characters.emplace_back(whole);
    for (size_t i = 1; i < whole.size(); ++i) {
      std::string broken(whole);
      for (const char other : {'\x20', '\x7F', '\xC0'}) {
        broken[i] = other;
        characters.push_back(broken);
      }
      characters.emplace_back(whole.substr(0, i));
    }
  }
  for (char control = 0; control < 0x20; ++control) characters.emplace_back(1, control);
  return characters;
}

std::vector<std::string> Escapes() {
  std::vector<std::string> escapes = {R"(\"\\\/\b\f\n\r\t)",
                                      R"(\u0000)",
                                      R"(\u0041)",
                                      R"(\u00e9)",
                                      R"(\u20AC)",
                                      R"(\uFDD0)",
                                      R"(\uFFFF)",
                                      R"(\uD83D\uDE00)",
                                      R"(\ud83d\ude00)",
                                      R"(\ud83d)",
                                      R"(\ud83dx)",
                                      R"(\ud83d\n)",
                                      R"(\ud83d\u0041)",
                                      R"(\ud83d\ud83d)",
                                      R"(\ud83d\uDE0)",
                                      R"(\ud83d\ug)",
                                      R"(\udE00)",
                                      R"(\u)",
                                      R"(\x41)",
                                      R"(\0)",
                                      R"(\')",
                                      R"(\uDBFF\uDFFF)",
                                      R"(\uD800\uDC00)",
                                      R"(\uD800\uE000)"};
  for (size_t at = 0; at < 4; ++at) {
    for (const char digit : {'/', '0', '9', ':', '@', 'A', 'F', 'G', '`', 'a', 'f', 'g'}) {
      std::string escape = "\\u1111";
      escape[2 + at] = digit;
      escapes.push_back(escape);
    }
    escapes.push_back("\\u1111" + std::string(at, '2'));
    escapes.push_back(std::string("\\u1111").substr(0, 2 + at));
  }
  return escapes;
}

}  // namespace

const std::vector<std::string>& JsonSpellings() {
  static const std::vector<std::string> spellings = [] {
    std::vector<std::string> made = {"true",
                                     "false",
                                     "null",
                                     "tru",
                                     "truX",
                                     "fals",
                                     "falsX",
                                     "nul",
                                     "nulX",
                                     "True",
                                     "none",
                                     "null0",
                                     "[]",
                                     "{}",
                                     "[ ]",
                                     "{ }",
                                     "[\t1 ,\r\n2 ]",
                                     "[\f1]",
                                     "[1,]",
                                     "[,1]",
                                     "[1 2]",
                                     "[1",
                                     "[[]",
                                     "]",
                                     "}",
                                     "[}",
                                     "{]",
                                     R"({"a":1,})",
                                     R"({,"a":1})",
                                     R"({"a" 1})",
                                     R"({"a":})",
                                     R"({"a"})",
                                     "{1:2}",
                                     "{a:1}",
                                     R"({"a":1 "b":2})",
                                     R"({"a":1,"a":2})",
                                     R"({"":1,"":{}})",
                                     R"({"\u0061":1,"a":2})",
                                     "/* x */ 1",
                                     "/* x",
                                     "// x\n1",
                                     "/x",
                                     "1 // x",
                                     "1 # x",
                                     "'a'",
                                     "\"a",
                                     "\"",
                                     "\"a\\",
                                     "\"a\\\"",
                                     "\xEF\xBB\xBF",
                                     "",
                                     " ",
                                     "1}",
                                     "1]",
                                     "1},",
                                     R"(1, "b": 2)",
                                     R"(1, "b")",
                                     R"(1, "b":)",
                                     "1,",
                                     ",",
                                     ":",
                                     std::string(1, '\0'),
                                     std::string(100, '['),
                                     std::string(2000, '['),
                                     std::string(300, '[') + std::string(300, ']')};
    std::string nested = "1";
    for (int i = 0; i < 300; ++i) nested = R"({"a":)" + nested + "}";
    made.push_back(nested);
    for (std::string& number : Numbers()) made.push_back(std::move(number));
    for (const auto& texts : {Characters(), Escapes()}) {
      for (const std::string& text : texts) {
        made.push_back("\"" + text + "\"");
        made.push_back("{\"" + text + "x\":1}");
      }
    }
    return made;
  }();
  return spellings;
}

}  // namespace oscar::fuzz
