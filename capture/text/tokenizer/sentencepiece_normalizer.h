// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's normalizer: a map of character sequences, and its rules for spaces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/tokenizer/normalizer.h"
#include "capture/text/tokenizer/sentencepiece_vocabulary.h"

namespace oscar {

// A precompiled_charsmap, which maps sequences of characters to replacements. It consists of the
// size of the trie in bytes (u32), the trie, and the replacements, each terminated by NUL. All
// numbers are little-endian. The trie is a double array of u32 (darts-clone, darts.h). A unit has
// its label in bits 0 to 7, "a value follows" in bit 8 and the distance to its children in higher
// bits. A value is an offset into the replacements, with bit 31 set.
class Charsmap {
 public:
  // Throws InputError naming `where` if the sizes contradict each other.
  Charsmap(std::string_view bytes, const std::string& where);

  struct Match {
    size_t length;  // bytes in the text
    std::string_view replacement;
  };
  // Returns the shortest or the longest sequence in the map that is a prefix of `text`.
  std::optional<Match> Find(std::string_view text, bool longest) const;

 private:
  std::vector<uint32_t> trie_;
  std::string replacements_;  // ends in NUL
};

// Makes the component "Precompiled" of tokenizer.json.
std::unique_ptr<const Normalizer> MakePrecompiled(const Json& component, const std::string& where);

// Makes SentencePiece's own normalizer, configured by `vocabulary`. Without `prefixes`, it never
// adds the dummy prefix; a step that knows where the text begins must then add it.
std::unique_ptr<const Normalizer> MakeSentencePieceNormalizer(
    const SentencePieceVocabulary& vocabulary, bool prefixes, const std::string& where);

}  // namespace oscar
