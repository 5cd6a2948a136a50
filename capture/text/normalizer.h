// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "normalizer" of tokenizer.json: Unicode normal forms, by utf8proc (Unicode 14), and the
// replacements with which SentencePiece layouts write spaces. Added
// tokens that are not "normalized" are cut out before this runs, so a character never composes
// across them.
#pragma once

#include <string>

#include "capture/text/component_table.h"

namespace oscar {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string Apply(std::string text) const = 0;  // valid UTF-8 in and out
  // Whether the first character of its result may not stem from the first character of the text.
  virtual bool moves_begin() const { return false; }
};

// Throws InputError naming `where` for a type that is not in the table.
Chain<Normalizer> MakeNormalizers(const Json& component, const std::string& where);

std::string Normalize(const Chain<Normalizer>& chain, std::string text);

}  // namespace oscar
