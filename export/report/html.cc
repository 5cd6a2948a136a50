// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/html.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace oscar {
namespace {

constexpr std::string_view kThinSpace = "\u202F";  // narrow no-break space

std::string GroupThousands(const std::string& digits) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool starts_group = i > 0 && (digits.size() - i) % 3 == 0;
    if (starts_group && digits[i - 1] != '-') out += kThinSpace;
    out += digits[i];
  }
  return out;
}

// Bytes that need no escaping.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < plain.size(); ++byte)
    plain[byte] = std::string_view("&<>\"'\x7F").find(static_cast<char>(byte)) == std::string::npos;
  return plain;
}();

void AppendHtml(std::string_view text, std::string& out) {
  if (std::ranges::all_of(text, [](char c) { return kPlain[static_cast<unsigned char>(c)]; })) {
    out += text;
    return;
  }
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += ' ';
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

// Whether a byte starts a UTF-8 character.
bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string Html(std::string_view text) {
  std::string html;
  AppendHtml(text, html);
  return html;
}

size_t CountCharacters(std::string_view utf8) {
  size_t count = 0;
  for (char c : utf8) count += StartsCharacter(c) ? 1 : 0;
  return count;
}

std::string HtmlCut(std::string_view text, size_t max_characters) {
  if (CountCharacters(text) <= max_characters) return Html(text);
  size_t end = 0, count = 0;
  while (end < text.size() && (count < max_characters - 1 || !StartsCharacter(text[end]))) {
    count += StartsCharacter(text[end]) ? 1 : 0;
    ++end;
  }
  return Html(text.substr(0, end)) + "…";
}

std::string FormatNumber(double value, Format format) {
  const double size = std::abs(value);
  switch (format) {
    case Format::kError:
      if (value == 0) return "0";
      if (size < 1e-3) return fmt::format(FMT_COMPILE("{:.1e}"), value);
      if (size < 0.01) return fmt::format(FMT_COMPILE("{:.5f}"), value);
      return size < 100 ? fmt::format(FMT_COMPILE("{:.4f}"), value)
                        : fmt::format(FMT_COMPILE("{:.4g}"), value);
    case Format::kPerplexity:
      return size < 1000 ? fmt::format(FMT_COMPILE("{:.4f}"), value)
                         : fmt::format(FMT_COMPILE("{:.5g}"), value);
    case Format::kPercent:
      return fmt::format(FMT_COMPILE("{:.1f}{}%"), value * 100, kThinSpace);
    case Format::kBits:
      return fmt::format(FMT_COMPILE("{:.2f}"), value);
    case Format::kCount:
      return GroupThousands(fmt::format(FMT_COMPILE("{:.0f}"), value));
    case Format::kInvariant:
      return value == 0 ? "0" : fmt::format(FMT_COMPILE("{:.1e}"), value);
    case Format::kGigabytes:
      return size < 1e9 ? fmt::format(FMT_COMPILE("{:.4f}{}GB"), value / 1e9, kThinSpace)
                        : fmt::format(FMT_COMPILE("{:.2f}{}GB"), value / 1e9, kThinSpace);
  }
  return {};
}

std::string DataAttributes(const Record& number) {
  std::string html = "data-path=\"";
  AppendHtml(number.pointer(), html);
  return html.append("\" data-value=\"").append(number.Text()).append("\"");
}

std::string Value(const Record& number, Format format) {
  std::string html = "<data value=\"";
  html.reserve(192);
  html.append(number.Text()).append("\" data-path=\"");
  AppendHtml(number.pointer(), html);
  return html.append("\">").append(FormatNumber(number.Number(), format)).append("</data>");
}

std::string Interval(const Record& interval, Format format, std::string_view between) {
  return Value(interval[0], format) + std::string(between) + Value(interval[1], format);
}

std::string Table(std::string_view label, const std::vector<std::string>& header_html,
                  const std::vector<TableRow>& rows) {
  std::string html = fmt::format(
      "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>",
      Html(label));
  for (const std::string& cell : header_html)
    html.append("<th scope=\"col\">").append(cell).append("</th>");
  html += "</tr></thead>\n<tbody>\n";
  const auto with_class = [&](const std::string& css) {
    if (!css.empty()) html.append(" class=\"").append(css).append("\"");
    html += '>';
  };
  for (const TableRow& row : rows) {
    html += "<tr";
    with_class(row.css);
    for (size_t i = 0; i < row.cells.size(); ++i) {
      html += i == 0 ? "<th scope=\"row\"" : "<td";
      with_class(i < row.cell_css.size() ? row.cell_css[i] : "");
      html.append(row.cells[i]).append(i == 0 ? "</th>" : "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string Note(std::string_view html) { return fmt::format("<p class=\"note\">{}</p>\n", html); }

}  // namespace oscar
