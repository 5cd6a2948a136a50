// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "normalizer" of tokenizer.json: Unicode normal forms, by utf8proc (Unicode 14), and the
// replacements by which SentencePiece layouts encode spaces. Added tokens that are not "normalized"
// are cut out before this runs, so characters never compose across them.
#pragma once

#include <string>

#include "capture/text/tokenizer/component_table.h"

namespace oscar {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Takes and returns valid UTF-8. A step that can enlarge text throws InputError at `max_bytes`.
  virtual std::string Apply(std::string text, size_t max_bytes) const = 0;
  // Whether this step may remove text from the front or add text there.
  virtual bool moves_begin() const { return false; }
};

// Throws InputError naming `where` for a type that is not in the table.
Chain<Normalizer> MakeNormalizers(const Json& component, const std::string& where);

std::string Normalize(const Chain<Normalizer>& chain, std::string text);

}  // namespace oscar
