// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "decoder" of tokenizer.json: converts token strings back to text. Like Hugging Face's
// decoder, it also reads an added token as bytes if all its characters belong to the byte alphabet
// ("café").
#pragma once

#include <string>
#include <vector>

#include "capture/text/tokenizer/component_table.h"

namespace oscar {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Throws InputError if the tokens together would exceed `max_bytes`.
  virtual std::vector<std::string> Apply(std::vector<std::string> tokens,
                                         size_t max_bytes) const = 0;
};

// Throws InputError naming `where` for a type that is not in the table.
Chain<Decoder> MakeDecoders(const Json& component, const std::string& where);

// Joins tokens with spaces if there is no decoder.
std::string DecodeTokens(const Chain<Decoder>& chain, std::vector<std::string> tokens);

}  // namespace oscar
