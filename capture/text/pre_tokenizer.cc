// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/pre_tokenizer.h"

#include <array>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/split_regex.h"

namespace oscar {
namespace {

using Range = PieceList::Range;

// What becomes of the matches and of the text between them (Hugging Face "SplitDelimiterBehavior").
enum class Behavior { kRemoved, kIsolated, kContiguous, kMergedWithPrevious, kMergedWithNext };

struct Section {
  Range range;
  bool is_match;
};

// A match joins what stands before it, unless that is a match too.
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

// A match joins what stands behind it, unless that is a match too.
void MergeBackward(std::span<const Section> sections, std::vector<Range>& out) {
  bool open = false;  // the last range of `out` is a match that waits for what follows
  for (const Section& section : sections) {
    if (open && !section.is_match) {
      out.back().end = section.range.end;
    } else {
      out.push_back(section.range);
    }
    open = section.is_match;
  }
}

void Join(std::span<const Section> sections, Behavior behavior, std::vector<Range>& out) {
  const size_t first = out.size();
  bool previous = false;
  switch (behavior) {
    case Behavior::kMergedWithPrevious:
      return MergeForward(sections, out);
    case Behavior::kMergedWithNext:
      return MergeBackward(sections, out);
    case Behavior::kIsolated:
      for (const Section& section : sections) out.push_back(section.range);
      return;
    case Behavior::kRemoved:
      for (const Section& section : sections) {
        if (!section.is_match) out.push_back(section.range);
      }
      return;
    case Behavior::kContiguous:
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

class SplitStep : public PreTokenizer {
 public:
  SplitStep(SplitRegex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}

  void Apply(PieceList& list) const override {
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

 private:
  void FindSections(std::string_view text, const Range& piece, RegexMatcher& matcher,
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

  SplitRegex regex_;
  Behavior behavior_;
  bool invert_;
};

// The prefix space and the split by GPT-2's pattern. Writing pieces in the byte alphabet is left to
// the vocabulary (bpe.h), which is kept in bytes; so this must be the last step.
class ByteLevelStep : public PreTokenizer {
 public:
  ByteLevelStep(bool add_prefix_space, std::unique_ptr<const SplitStep> split)
      : add_prefix_space_(add_prefix_space), split_(std::move(split)) {}

  void Apply(PieceList& list) const override {
    if (add_prefix_space_) AddPrefixSpaces(list);
    if (split_ != nullptr) split_->Apply(list);
  }
  bool is_byte_level() const override { return true; }

 private:
  static void AddPrefixSpaces(PieceList& list) {
    PieceList out;
    for (const Range& piece : list.pieces) {
      const size_t begin = out.text.size();
      if (list.text[piece.begin] != ' ') out.text += ' ';
      out.text.append(list.text, piece.begin, piece.end - piece.begin);
      out.pieces.push_back({begin, out.text.size()});
    }
    list = std::move(out);
  }

  bool add_prefix_space_;
  std::unique_ptr<const SplitStep> split_;  // null: use_regex is false
};

// OpenAI's GPT-2 encoder.py.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

void AppendByteLevel(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  JsonBool(component, "trim_offsets", true, where);  // only moves offsets, which we do not report
  const bool add_prefix_space = JsonBool(component, "add_prefix_space", true, where);
  std::unique_ptr<const SplitStep> split;
  if (JsonBool(component, "use_regex", true, where)) {  // absent in old files, which means true
    split =
        std::make_unique<SplitStep>(SplitRegex(kGpt2Pattern, SplitRegex::Syntax::kOniguruma, where),
                                    Behavior::kIsolated, false);
  }
  chain.push_back(std::make_unique<ByteLevelStep>(add_prefix_space, std::move(split)));
}

Behavior ParseBehavior(const std::string& name, const std::string& where) {
  static constexpr std::array<std::pair<std::string_view, Behavior>, 5> kNames = {{
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"Contiguous", Behavior::kContiguous},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
  }};
  std::vector<std::string_view> known;
  for (const auto& [known_name, behavior] : kNames) {
    if (known_name == name) return behavior;
    known.push_back(known_name);
  }
  throw InputError(fmt::format("{}: behavior {} is not supported; supported: {}", where,
                               Quoted(name), fmt::join(known, ", ")));
}

void AppendSplit(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  const Json& pattern = JsonMember(component, "pattern", where);
  const std::string inner = where + ".pattern";
  if (!pattern.is_object() || pattern.size() != 1 ||
      !(pattern.contains("Regex") || pattern.contains("String"))) {
    throw InputError(inner + ": expected an object with one member, \"Regex\" or \"String\"");
  }
  const bool is_regex = pattern.contains("Regex");
  const std::string text = JsonString(pattern, is_regex ? "Regex" : "String", inner);
  chain.push_back(std::make_unique<SplitStep>(
      SplitRegex(text, is_regex ? SplitRegex::Syntax::kOniguruma : SplitRegex::Syntax::kLiteral,
                 inner),
      ParseBehavior(JsonString(component, "behavior", where), where),
      JsonBool(component, "invert", false, where)));
}

void AppendDigits(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  const bool individual = JsonBool(component, "individual_digits", false, where);
  chain.push_back(
      std::make_unique<SplitStep>(SplitRegex("\\p{N}", SplitRegex::Syntax::kPcre2, where),
                                  individual ? Behavior::kIsolated : Behavior::kContiguous, false));
}

std::span<const ComponentKind<PreTokenizer>> Kinds() {
  static const std::vector<ComponentKind<PreTokenizer>> kinds = {
      {"ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"}, AppendByteLevel},
      {"Digits", {"individual_digits"}, AppendDigits},
      {"Split", {"pattern", "behavior", "invert"}, AppendSplit},
      {"Sequence",
       {"pretokenizers"},
       [](const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
         AppendSequence(Kinds(), component, "pretokenizers", where, chain);
       }},
  };
  return kinds;
}

}  // namespace

Chain<PreTokenizer> MakePreTokenizers(const Json& component, const std::string& where) {
  Chain<PreTokenizer> chain;
  AppendComponent(Kinds(), component, where, chain);
  if (chain.empty() || !chain.back()->is_byte_level()) {
    throw InputError(where +
                     ": the last step is not ByteLevel; only byte-level BPE is supported (not "
                     "SentencePiece layouts). Give rows with \"input_ids\" to calibrate without "
                     "this tokenizer");
  }
  return chain;
}

PieceList PreTokenize(const Chain<PreTokenizer>& chain, std::string text) {
  PieceList list;
  list.text = std::move(text);
  if (!list.text.empty()) list.pieces.push_back({0, list.text.size()});
  for (const auto& step : chain) step->Apply(list);
  return list;
}

}  // namespace oscar
