// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/quote.h"

#include <fmt/format.h>

namespace oscar {
namespace {

// Returns the bytes of the UTF-8 sequence at text[i] (Unicode 15, table 3-7); 0 if invalid.
size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const auto continues = [&](size_t count) {
    if (i + count >= text.size()) return false;
    for (size_t k = 1; k <= count; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    return true;
  };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF && continues(1)) return 2;
  if ((lead & 0xF0) == 0xE0 && continues(2)) {
    const unsigned char second = byte(i + 1);
    const bool overlong = lead == 0xE0 && second < 0xA0;
    const bool surrogate = lead == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4 && continues(3)) {
    const unsigned char second = byte(i + 1);
    const bool overlong = lead == 0xF0 && second < 0x90;
    const bool beyond_unicode = lead == 0xF4 && second > 0x8F;
    return overlong || beyond_unicode ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::string Escaped(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t i = 0;
  while (i < text.size() && i < max_bytes) {
    const size_t length = Utf8Length(text, i);
    const char c = text[i];
    if (length == 0 || (length == 1 && (c < 0x20 || c == 0x7F))) {
      out +=
          c == '\n' ? std::string("\\n") : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  if (i < text.size()) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::string Quoted(std::string_view text, size_t max_bytes) {
  return '"' + Escaped(text, max_bytes) + '"';
}

}  // namespace oscar
