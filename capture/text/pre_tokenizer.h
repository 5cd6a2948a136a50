// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "pre_tokenizer" of tokenizer.json: cuts a normalized stretch of text into the pieces inside
// which BPE merges. Each step sees one piece as a whole text, so lookarounds never see past
// a cut made by an earlier step.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/component_table.h"

namespace oscar {

// OpenAI's GPT-2 encoder.py: the split of ByteLevel.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Pieces are ranges of `text`, in order, none empty. Bytes between them were removed by a step.
struct PieceList {
  struct Range {
    size_t begin, end;  // bytes of `text`
  };
  std::string text;
  std::vector<Range> pieces;
  bool begins_text = true;  // nothing stands before it: Metaspace asks
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void Apply(PieceList& list) const = 0;
  virtual bool is_byte_level() const { return false; }
  // Whether it treats the piece at the beginning of the text differently.
  virtual bool asks_for_begin() const { return false; }
};

// Throws InputError naming `where` for a type that is not in the table, or if ByteLevel is not the
// last step. Without ByteLevel the pieces are characters, not bytes, to the model.
Chain<PreTokenizer> MakePreTokenizers(const Json& component, const std::string& where);

PieceList PreTokenize(const Chain<PreTokenizer>& chain, std::string text, bool begins_text = true);

}  // namespace oscar
