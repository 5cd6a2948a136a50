// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds the text in which needles are hidden, in any size, and inserts them. A size is counted in
// units: lines of noise or of other needles, or words of prose. The place of a needle is drawn
// once, as a share of the text. So when the size is fitted to a number of tokens, needles move but
// are not drawn again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/evaluate/needle_tasks.h"

namespace oscar {

struct Context {
  std::string text;
  std::vector<double> depths;  // [num_hidden] percent of the text before each sentence
};

// Prose that is cut into words and sentences once for all samples. White space becomes single
// spaces, and a text that is too short is repeated. A sentence ends at . ! or ? and any closing
// quotes and brackets.
class ProseHaystack {
 public:
  // Throws InputError for text that is not UTF-8 or has no word.
  explicit ProseHaystack(std::string_view text);
  // Returns the first `num_words` words. Sets `ends` to the byte offsets where sentences end; the
  // last one is the size of the result.
  std::string_view Take(size_t num_words, std::vector<size_t>& ends);

 private:
  void Repeat();
  std::string once_;               // words joined by single spaces
  std::string text_;               // once_, repeated as often as needed
  std::vector<size_t> word_ends_;  // byte offsets
  std::vector<uint8_t> closes_;    // [num_words] 1 if a sentence ends with this word
};

// The place of a needle in the haystack.
struct NeedlePlace {
  // The text is divided into `num_strata` equal parts. If there is only one hidden sentence, it
  // goes to part `stratum`, so that a few samples cover all depths.
  int64_t stratum = 0, num_strata = 1;
  std::optional<double> depth = {};  // percent, for the sentence with the answer (HasOnePlace)
};

// Whether one sentence holds the whole answer, so that the answer can be put at a given depth.
bool HasOnePlace(const NeedleTask& task);

class Haystack {
 public:
  // Draws the places of question.hidden, except one that `place` specifies. Keeps the references.
  Haystack(const NeedleTask& task, const NeedleQuestion& question, ProseHaystack& prose,
           const std::vector<std::string>& words, SplitMix64& random, const NeedlePlace& place);

  int64_t min_units() const { return static_cast<int64_t>(question_.hidden.size()); }
  Context Build(int64_t num_units);

 private:
  void PutAnswerAt(double depth);
  const std::string& Sentence(size_t place) const { return question_.hidden[order_[place]].text; }
  void SetDepths(const std::vector<size_t>& starts, Context& context) const;
  Context InsertIntoLines(int64_t num_lines);
  Context InsertIntoProse(int64_t num_words);

  const NeedleTask& task_;
  const NeedleQuestion& question_;
  ProseHaystack& prose_;
  const std::vector<std::string>& words_;
  SplitMix64 distractor_random_;
  std::vector<std::string> distractors_;  // grows with the largest size requested
  std::vector<double> shares_;            // for lines: [num_hidden] ascending, in [0, 1)
  std::vector<int> depths_;               // for prose: [num_hidden] ascending, percent
  std::vector<size_t> order_;             // [num_hidden] the sentence at each place
};

}  // namespace oscar
