// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The byte-level alphabet of GPT-2 (Radford et al. 2019, encoder.py, bytes_to_unicode): the
// vocabulary writes each byte as one printable character, so that "Ġthe" is the token " the".
// Inside oscar, pieces stay bytes; only vocabularies and the decoder use these characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oscar {

char32_t ByteToAlphabet(uint8_t byte);

// Returns the bytes that a vocabulary entry represents; nothing if one of its characters is not in
// the alphabet.
std::optional<std::string> AlphabetToBytes(std::string_view token);

}  // namespace oscar
