// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The byte-level alphabet of GPT-2 (Radford et al. 2019, encoder.py, bytes_to_unicode): each byte
// is written as one printable character in the vocabulary, so that "Ġthe" is the token " the".
// Inside oscar pieces stay bytes; only vocabularies and the decoder meet these characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oscar {

char32_t ByteToAlphabet(uint8_t byte);

// The bytes a vocabulary entry stands for; nothing if one of its characters is not in the alphabet.
std::optional<std::string> AlphabetToBytes(std::string_view token);

}  // namespace oscar
