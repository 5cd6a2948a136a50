// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Short sentences in many scripts: time, subject, place and action of a language recombined in its
// word order (script_languages.cc), sometimes with a number or an emoji.
#include "capture/text/corpus/genres.h"
#include "capture/text/corpus/script_languages.h"

namespace oscar {
namespace {

constexpr std::string_view kEmoji[] = {"🙂",   "🌧️", "🚲", "📦", "👩‍🔬", "🎉",
                                       "❤️", "🇯🇵",      "🍞", "🌍", "✅",           "👍🏽"};

}  // namespace

std::string MakeScripts(SplitMix64& random, size_t target_bytes, size_t variant) {
  // The variant moves the starting language, so that short documents differ.
  const std::span<const ScriptLanguage> languages = ScriptLanguages();
  std::vector<Grammar> grammars;
  grammars.reserve(languages.size());
  for (const ScriptLanguage& language : languages) grammars.emplace_back(language.rules, random);
  size_t next = variant * 3;
  return Fill(target_bytes, "\n",
              [&] {
                const size_t i = next++ % languages.size();
                std::string line = std::string(languages[i].name) + ":";
                for (int64_t n = random.Between(2, 4); n > 0; --n) {
                  line += std::string(languages[i].space) + grammars[i].Make("sentence");
                }
                if (random.Below(3) == 0) line += " " + std::string(random.Pick(kEmoji));
                return line;
              }) +
         "\n";
}

}  // namespace oscar
