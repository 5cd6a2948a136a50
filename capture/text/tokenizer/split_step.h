// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pre-tokenizers that cut at the matches of a pattern. `invert` exchanges matches and other text
// before the behavior applies, so "Removed" with invert keeps the matches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/regex.h"
#include "capture/text/tokenizer/pre_tokenizer.h"

namespace oscar {

// How matches and the text between them are treated (Hugging Face "SplitDelimiterBehavior").
enum class SplitBehavior { kRemoved, kIsolated, kContiguous, kMergedWithPrevious, kMergedWithNext };

// Throws InputError naming `where` and the known names if the name is unknown.
SplitBehavior ParseSplitBehavior(const std::string& name, const std::string& where);

class SplitStep : public PreTokenizer {
 public:
  SplitStep(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  void Apply(PieceList& list) const override;

 private:
  struct Section {
    PieceList::Range range;
    bool is_match;
  };
  static void Join(std::span<const Section> sections, SplitBehavior behavior,
                   std::vector<PieceList::Range>& out);
  void FindSections(std::string_view text, const PieceList::Range& piece, RegexMatcher& matcher,
                    std::vector<Section>& sections) const;

  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

}  // namespace oscar
