// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "capture/files/utf8.h"

namespace oscar {
namespace {

constexpr size_t kShownTokens = 40;  // shown at the beginning and at the end

bool IsControl(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x00AD || c == 0x061C ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

std::string Show(std::span<const int32_t> ids, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return fmt::format("{}", fmt::join(ids, " "));
  return MakeControlsVisible(tokenizer->Decode(ids, /*skip_special_tokens=*/false));
}

// Returns a description such as "template 0123456789ab, date 2026-01-01".
std::string ChatFormatName(const DataSet& data) {
  if (data.chat_template.is_null()) return data.chat_format;
  std::string name =
      data.chat_format + " " + data.chat_template.at("sha256").get<std::string>().substr(0, 12);
  if (data.chat_template.contains("date"))
    name += ", date " + data.chat_template.at("date").get<std::string>();
  return name;
}

}  // namespace

std::string MakeControlsVisible(std::string_view text) {
  std::string out;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = NextCodePoint(text, position);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\\') {
      out += "\\\\";
    } else if (IsControl(c)) {
      out += fmt::format("\\u{{{:X}}}", static_cast<uint32_t>(c));
    } else {
      AppendUtf8(c, out);
    }
  }
  return out;
}

std::string ShowSamples(const DataSet& data, const Tokenizer* tokenizer, int num_documents) {
  const DataCounts& n = data.counts;
  std::string out = fmt::format(
      "{} (chat format: {})\n"
      "documents: {} sent, {} used, {} of these truncated, {} dropped\n"
      "tokens:    {} sent, {} used, {} truncated, {} dropped\n",
      data.name, ChatFormatName(data), n.documents_sent, n.documents_used, n.documents_truncated,
      n.documents_dropped, n.tokens_sent, n.tokens_used, n.tokens_truncated, n.tokens_dropped);
  const auto shown = static_cast<size_t>(std::max(num_documents, 0));
  for (size_t i = 0; i < data.documents.size() && i < shown; ++i) {
    const std::span<const int32_t> ids = data.documents[i].ids;
    out += fmt::format("\n[{}] {}: {} tokens\n", i + 1, data.documents[i].origin, ids.size());
    if (ids.size() <= 2 * kShownTokens) {
      out += fmt::format("  all   {}\n", Show(ids, tokenizer));
    } else {
      out += fmt::format("  first {}\n  last  {}\n", Show(ids.first(kShownTokens), tokenizer),
                         Show(ids.last(kShownTokens), tokenizer));
    }
  }
  return out;
}

}  // namespace oscar
