// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "pre_tokenizer" of tokenizer.json: cuts a normalized text into the pieces within which BPE
// merges. Each step treats a piece as a whole text, so lookarounds never see past the cuts of
// earlier steps.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/tokenizer/component_table.h"

namespace oscar {

// The split of ByteLevel, from OpenAI's GPT-2 encoder.py.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Pieces are ranges of `text`, in order, none empty. Bytes between them were removed by a step.
struct PieceList {
  struct Range {
    size_t begin, end;  // bytes of `text`
  };
  std::string text;
  std::vector<Range> pieces;
  bool begins_text = true;  // whether `text` begins the whole text (for Metaspace)
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void Apply(PieceList& list) const = 0;
  virtual bool is_byte_level() const { return false; }
  // Whether this step treats the piece at the start of the text differently.
  virtual bool asks_for_begin() const { return false; }
};

// Throws InputError naming `where` for a type that is not in the table, or if ByteLevel is not the
// last step. Without ByteLevel the model sees pieces as characters, not bytes.
Chain<PreTokenizer> MakePreTokenizers(const Json& component, const std::string& where);

PieceList PreTokenize(const Chain<PreTokenizer>& chain, std::string text, bool begins_text = true);

}  // namespace oscar
