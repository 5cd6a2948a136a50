// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that Oniguruma patterns keep their meaning on PCRE2, for patterns whose meaning differs if
// they are not rewritten.
#include "capture/files/regex.h"

#include <gtest/gtest.h>

#include <vector>

#include "capture/text/tokenizer/regex_dialect.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

std::vector<std::string> Matches(const std::string& pattern, const std::string& text) {
  const Regex regex = OnigurumaRegex(pattern, "test");
  RegexMatcher matcher(regex);
  matcher.Reset(text);
  std::vector<std::string> found;
  for (size_t begin = 0, end = 0; matcher.Next(begin, end);) {
    found.push_back(text.substr(begin, end - begin));
  }
  return found;
}

using Strings = std::vector<std::string>;

TEST(RegexDialect, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(Matches("\\s+", "a \u00A0\u3000b\u180Ec"), Strings{" \u00A0\u3000"});
  EXPECT_EQ(Matches("[^\\s]+", "a\u180Eb c"), (Strings{"a\u180Eb", "c"}));
  EXPECT_EQ(Matches("[\\S]+", "a\u180Eb\u2009c"), (Strings{"a\u180Eb", "c"}));
  EXPECT_EQ(Matches("\\S+", "a\u0085b"), (Strings{"a", "b"}));
}

TEST(RegexDialect, IntervalPlusRepeats) {
  EXPECT_EQ(Matches("\\p{N}{1,3}", "1234567"), (Strings{"123", "456", "7"}));
  EXPECT_EQ(Matches("\\p{N}{1,3}+", "1234567"), Strings{"1234567"});
  EXPECT_EQ(Matches("(?:ab){2}+", "ababababab"), Strings{"abababab"});
  EXPECT_EQ(Matches("a{,2}b", "aaab"), Strings{"aab"});
  EXPECT_EQ(Matches("a++b", "aab"), Strings{"aab"});
  EXPECT_EQ(Matches("{x}", "{x}"), Strings{"{x}"});
}

TEST(RegexDialect, AnchorsAreOfLines) {
  EXPECT_EQ(Matches("^a.$", "ab\nac"), (Strings{"ab", "ac"}));
}

TEST(RegexDialect, ClassHyphenBehindASetIsLiteral) {
  EXPECT_EQ(Matches("[\\s-a]+", "a- z"), Strings{"a- "});
  EXPECT_EQ(Matches("[]a]+", "]a["), Strings{"]a"});
}

TEST(RegexDialect, CaseFoldingReachesLongSAndKelvin) {
  EXPECT_EQ(Matches("(?i:'s|'k)", "'ſ 'K 'x"), (Strings{"'ſ", "'K"}));
}

TEST(RegexDialect, EmptyMatchesNeverFollowAMatch) {
  EXPECT_EQ(Matches("x*", "axxb"), (Strings{"", "xx", ""}));
}

TEST(RegexDialect, RefusesByName) {
  for (const char* pattern :
       {"[a&&[^b]]", "[[:alpha:]]", "\\bword\\b", "\\h", "(?m:a)", "(?<name>a)", "(a)\\1", "\\R",
        "(?R)", "a{2}?", "\\xC3", "*a", "(a", "a)", "[a", "\\", "(*UTF)a", "a(?i)b|c", "\\K"}) {
    EXPECT_THROW(OnigurumaToPcre2(pattern, "test"), InputError) << pattern;
  }
  EXPECT_THROW(OnigurumaRegex("\\p{NoSuchProperty}", "test"), InputError);
  EXPECT_THROW(OnigurumaRegex(std::string(70000, 'a'), "test"), InputError);
}

TEST(Regex, EndlessBacktrackingIsAnError) {
  EXPECT_THROW(Matches("(?:a+)+$", std::string(60, 'a') + "b"), InputError);
}

}  // namespace
}  // namespace oscar
