// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/byte_alphabet.h"

#include <array>

#include "capture/files/utf8.h"

namespace oscar {
namespace {

constexpr char32_t kAlphabetEnd = 0x144;  // 256 plus the 68 bytes without a printable form

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, kAlphabetEnd> byte{};  // -1: not in the alphabet
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  char32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable =
        (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
    const char32_t c = printable ? static_cast<char32_t>(b) : next++;
    alphabet.character[static_cast<size_t>(b)] = c;
    alphabet.byte[c] = static_cast<int16_t>(b);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

char32_t ByteToAlphabet(uint8_t byte) { return kAlphabet.character[byte]; }

std::optional<std::string> AlphabetToBytes(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t position = 0; position < token.size();) {
    const char32_t c = NextCodePoint(token, position);
    if (c >= kAlphabetEnd || kAlphabet.byte[c] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[c]);
  }
  return bytes;
}

}  // namespace oscar
