// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/split_step.h"

#include <array>
#include <utility>

#include "capture/files/quote.h"

namespace oscar {
namespace {

using Range = PieceList::Range;

// A match is joined to the text before it, unless that is a match too.
template <class Section>
void MergeForward(std::span<const Section> sections, std::vector<Range>& out) {
  const size_t first = out.size();
  bool previous = false;
  for (const Section& section : sections) {
    if (section.is_match && !previous && out.size() > first) {
      out.back().end = section.range.end;
    } else {
      out.push_back(section.range);
    }
    previous = section.is_match;
  }
}

// A match is joined to the text after it, unless that is a match too.
template <class Section>
void MergeBackward(std::span<const Section> sections, std::vector<Range>& out) {
  bool open = false;  // the last range in `out` is a match that waits for the next one
  for (const Section& section : sections) {
    if (open && !section.is_match) {
      out.back().end = section.range.end;
    } else {
      out.push_back(section.range);
    }
    open = section.is_match;
  }
}

}  // namespace

void SplitStep::Join(std::span<const Section> sections, SplitBehavior behavior,
                     std::vector<Range>& out) {
  const size_t first = out.size();
  bool previous = false;
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      return MergeForward(sections, out);
    case SplitBehavior::kMergedWithNext:
      return MergeBackward(sections, out);
    case SplitBehavior::kIsolated:
      for (const Section& section : sections) out.push_back(section.range);
      return;
    case SplitBehavior::kRemoved:
      for (const Section& section : sections) {
        if (!section.is_match) out.push_back(section.range);
      }
      return;
    case SplitBehavior::kContiguous:
      for (const Section& section : sections) {
        if (section.is_match == previous && out.size() > first) {
          out.back().end = section.range.end;
        } else {
          out.push_back(section.range);
        }
        previous = section.is_match;
      }
      return;
  }
}

void SplitStep::Apply(PieceList& list) const {
  RegexMatcher matcher(regex_);
  std::vector<Range> out;
  out.reserve(list.pieces.size());
  std::vector<Section> sections;
  for (const Range& piece : list.pieces) {
    FindSections(list.text, piece, matcher, sections);
    Join(sections, behavior_, out);
  }
  std::erase_if(out, [](const Range& range) { return range.begin == range.end; });
  list.pieces = std::move(out);
}

void SplitStep::FindSections(std::string_view text, const Range& piece, RegexMatcher& matcher,
                             std::vector<Section>& sections) const {
  sections.clear();
  matcher.Reset(text.substr(piece.begin, piece.end - piece.begin));
  size_t done = piece.begin;
  size_t begin = 0;
  size_t end = 0;
  while (matcher.Next(begin, end)) {
    begin += piece.begin;
    end += piece.begin;
    if (done != begin) sections.push_back({{done, begin}, invert_});
    sections.push_back({{begin, end}, !invert_});
    done = end;
  }
  if (done != piece.end) sections.push_back({{done, piece.end}, invert_});
}

SplitBehavior ParseSplitBehavior(const std::string& name, const std::string& where) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"Contiguous", SplitBehavior::kContiguous},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
  }};
  std::vector<std::string_view> known;
  for (const auto& [known_name, behavior] : kNames) {
    if (known_name == name) return behavior;
    known.push_back(known_name);
  }
  throw InputError(fmt::format("{}: behavior {} is not supported; supported: {}", where,
                               Quoted(name), fmt::join(known, ", ")));
}

}  // namespace oscar
