// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/utf8.h"

#include <cstdint>

namespace oscar {
namespace {

struct Sequence {
  size_t size = 1;    // bytes of the sequence, or of the maximal ill-formed subsequence
  bool valid = true;  // false: replace these bytes by one U+FFFD
};

// Unicode 15, table 3-7. The second byte's range depends on the first; the rest are 80..BF.
Sequence ReadSequence(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(position);
  if (lead < 0x80) return {};
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  size_t size = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  for (size_t i = 1; i < size; ++i) {
    if (position + i >= text.size() || byte(position + i) < low || byte(position + i) > high) {
      return {i, false};
    }
    low = 0x80;
    high = 0xBF;
  }
  return {size, true};
}

}  // namespace

std::optional<size_t> FirstInvalidUtf8(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    const Sequence sequence = ReadSequence(text, position);
    if (!sequence.valid) return position;
    position += sequence.size;
  }
  return std::nullopt;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t position = 0; position < bytes.size();) {
    const Sequence sequence = ReadSequence(bytes, position);
    if (sequence.valid) {
      out.append(bytes.substr(position, sequence.size));
    } else {
      out += "\xEF\xBF\xBD";
    }
    position += sequence.size;
  }
  return out;
}

char32_t NextCodePoint(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[i])); };
  const char32_t lead = byte(position++);
  if (lead < 0x80) return lead;
  const int continuation = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t code_point = lead & (0x3FU >> continuation);
  for (int i = 0; i < continuation; ++i) code_point = code_point << 6 | (byte(position++) & 0x3F);
  return code_point;
}

void AppendUtf8(char32_t c, std::string& out) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace oscar
