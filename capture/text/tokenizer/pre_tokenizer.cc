// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/pre_tokenizer.h"

#include <utility>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/tokenizer/pattern.h"
#include "capture/text/tokenizer/regex_dialect.h"
#include "capture/text/tokenizer/split_step.h"
#include "capture/text/tokenizer/tokenizer_components.h"

namespace oscar {
namespace {

using Range = PieceList::Range;

// Adds the prefix space and splits by GPT-2's pattern. Unlike the library, it does not write pieces
// in the byte alphabet, because the vocabulary was converted to bytes (byte_alphabet.h). So this
// must be the last step.
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

void AppendByteLevel(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  JsonBool(component, "trim_offsets", true, where);  // only moves offsets, which we do not report
  const bool add_prefix_space = JsonBool(component, "add_prefix_space", true, where);
  std::unique_ptr<const SplitStep> split;
  if (JsonBool(component, "use_regex", true, where)) {  // absent in old files, which means true
    split = std::make_unique<SplitStep>(OnigurumaRegex(kGpt2Pattern, where),
                                        SplitBehavior::kIsolated, false);
  }
  chain.push_back(std::make_unique<ByteLevelStep>(add_prefix_space, std::move(split)));
}

void AppendSplit(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  chain.push_back(std::make_unique<SplitStep>(
      ParsePattern(component, where),
      ParseSplitBehavior(JsonString(component, "behavior", where), where),
      JsonBool(component, "invert", false, where)));
}

void AppendDigits(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  const bool individual = JsonBool(component, "individual_digits", false, where);
  chain.push_back(std::make_unique<SplitStep>(
      Regex("\\p{N}", Regex::Syntax::kPcre2, where),
      individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false));
}

// Encodes spaces like SentencePiece: replaces each ' ' by `replacement`, may add one in front, and
// may start a new piece at each.
class MetaspaceStep : public PreTokenizer {
 public:
  enum class Prepend { kFirst, kNever, kAlways };
  MetaspaceStep(std::string replacement, Prepend prepend, std::unique_ptr<const SplitStep> split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(std::move(split)) {}

  void Apply(PieceList& list) const override {
    PieceList out;
    out.begins_text = list.begins_text;
    for (const Range& piece : list.pieces) {
      const size_t begin = out.text.size();
      const bool is_first = list.begins_text && piece.begin == 0;
      for (size_t i = piece.begin; i < piece.end; ++i) {
        if (list.text[i] == ' ') {
          out.text += replacement_;
        } else {
          out.text += list.text[i];
        }
      }
      const bool prepends =
          prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && is_first);
      if (prepends && !std::string_view(out.text).substr(begin).starts_with(replacement_))
        out.text.insert(begin, replacement_);
      out.pieces.push_back({begin, out.text.size()});
    }
    list = std::move(out);
    if (split_ != nullptr) split_->Apply(list);
  }
  bool asks_for_begin() const override { return prepend_ == Prepend::kFirst; }

 private:
  std::string replacement_;
  Prepend prepend_;
  std::unique_ptr<const SplitStep> split_;  // null: one piece
};

MetaspaceStep::Prepend ParsePrepend(const Json& component, const std::string& where) {
  using Prepend = MetaspaceStep::Prepend;
  // Old files have a flag instead of prepend_scheme.
  const bool flag = JsonBool(component, "add_prefix_space", true, where);
  const std::string scheme =
      JsonString(component, "prepend_scheme", flag ? "always" : "never", where);
  if (scheme == "first") return Prepend::kFirst;
  if (scheme == "never") return Prepend::kNever;
  if (scheme == "always") return Prepend::kAlways;
  throw InputError(
      fmt::format("{}: prepend_scheme {} is not supported; supported: first, never, always", where,
                  Quoted(scheme)));
}

void AppendMetaspace(const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
  const std::string replacement = JsonString(component, "replacement", where);
  std::unique_ptr<const SplitStep> split;
  if (JsonBool(component, "split", true, where)) {
    split = std::make_unique<SplitStep>(Regex(replacement, Regex::Syntax::kLiteral, where),
                                        SplitBehavior::kMergedWithNext, false);
  }
  chain.push_back(std::make_unique<MetaspaceStep>(replacement, ParsePrepend(component, where),
                                                  std::move(split)));
}

// Appends a step with one pattern and one behavior.
void AppendPattern(std::string_view pattern, SplitBehavior behavior, bool invert,
                   const std::string& where, Chain<PreTokenizer>& chain) {
  chain.push_back(
      std::make_unique<SplitStep>(Regex(pattern, Regex::Syntax::kPcre2, where), behavior, invert));
}

void AppendPunctuation(const Json& component, const std::string& where,
                       Chain<PreTokenizer>& chain) {
  // Unicode punctuation, and ASCII punctuation that Unicode classifies as symbols.
  AppendPattern(R"([\p{P}$+<=>^`|~])",
                ParseSplitBehavior(JsonString(component, "behavior", "Isolated", where), where),
                false, where, chain);
}

std::span<const ComponentKind<PreTokenizer>> Kinds() {
  static const std::vector<ComponentKind<PreTokenizer>> kinds = {
      {"ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"}, AppendByteLevel},
      {"Digits", {"individual_digits"}, AppendDigits},
      {"Split", {"pattern", "behavior", "invert"}, AppendSplit},
      {"Metaspace",
       {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"},
       AppendMetaspace},
      {"Punctuation", {"behavior"}, AppendPunctuation},
      {"Whitespace",
       {},
       [](const Json&, const std::string& where, Chain<PreTokenizer>& chain) {
         AppendPattern(
             "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]+|[^\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\s]+",
             SplitBehavior::kRemoved, true, where, chain);
       }},
      {"WhitespaceSplit",
       {},
       [](const Json&, const std::string& where, Chain<PreTokenizer>& chain) {
         AppendPattern("\\s", SplitBehavior::kRemoved, false, where, chain);
       }},
      {"CharDelimiterSplit",
       {"delimiter"},
       [](const Json& component, const std::string& where, Chain<PreTokenizer>& chain) {
         chain.push_back(std::make_unique<SplitStep>(
             Regex(JsonString(component, "delimiter", where), Regex::Syntax::kLiteral, where),
             SplitBehavior::kRemoved, false));
       }},
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
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (!chain[i]->is_byte_level()) continue;
    throw InputError(where +
                     ": a step after ByteLevel is not supported; supported: ByteLevel as the last "
                     "step. Give rows with \"input_ids\" to calibrate without this tokenizer");
  }
  return chain;
}

PieceList PreTokenize(const Chain<PreTokenizer>& chain, std::string text, bool begins_text) {
  PieceList list;
  list.text = std::move(text);
  list.begins_text = begins_text;
  if (!list.text.empty()) list.pieces.push_back({0, list.text.size()});
  for (const auto& step : chain) step->Apply(list);
  return list;
}

std::vector<std::string_view> PreTokenizerTypes() { return TypesOf(Kinds()); }

}  // namespace oscar
