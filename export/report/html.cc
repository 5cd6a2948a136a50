// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/html.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace oscar {
namespace {

constexpr std::string_view kThinSpace = "\u202F";  // narrow, does not break

std::string GroupThousands(const std::string& digits) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool starts_group = i > 0 && (digits.size() - i) % 3 == 0;
    if (starts_group && digits[i - 1] != '-') out += kThinSpace;
    out += digits[i];
  }
  return out;
}

// Whether a byte begins a UTF-8 character.
bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string Html(std::string_view text) {
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '&' && c != '<' && c != '>' && c != '"' &&
           c != '\'' && c != 0x7F;
  };
  if (std::ranges::all_of(text, plain)) return std::string(text);
  std::string out;
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
  return out;
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
      if (size < 1e-3) return fmt::format("{:.1e}", value);
      if (size < 0.01) return fmt::format("{:.5f}", value);
      return size < 100 ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
    case Format::kPerplexity:
      return size < 1000 ? fmt::format("{:.4f}", value) : fmt::format("{:.5g}", value);
    case Format::kPercent:
      return fmt::format("{:.1f}{}%", value * 100, kThinSpace);
    case Format::kBits:
      return fmt::format("{:.2f}", value);
    case Format::kCount:
      return GroupThousands(fmt::format("{:.0f}", value));
    case Format::kInvariant:
      return value == 0 ? "0" : fmt::format("{:.1e}", value);
  }
  return {};
}

std::string DataAttributes(const Record& number) {
  return fmt::format(FMT_COMPILE("data-path=\"{}\" data-value=\"{}\""), Html(number.pointer()),
                     number.json().dump());
}

std::string Value(const Record& number, Format format) {
  return fmt::format(FMT_COMPILE("<data value=\"{}\" data-path=\"{}\">{}</data>"),
                     number.json().dump(), Html(number.pointer()),
                     FormatNumber(number.Number(), format));
}

std::string Interval(const Record& interval, Format format, std::string_view between) {
  return Value(interval[0], format) + std::string(between) + Value(interval[1], format);
}

std::string Table(std::string_view label, const std::vector<std::string>& header_html,
                  const std::vector<TableRow>& rows) {
  std::string html = fmt::format(
      "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>",
      Html(label));
  for (const std::string& cell : header_html) html += "<th scope=\"col\">" + cell + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : rows) {
    html += row.css.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row.css);
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::string css = i < row.cell_css.size() && !row.cell_css[i].empty()
                                  ? fmt::format(" class=\"{}\"", row.cell_css[i])
                                  : "";
      html += i == 0 ? fmt::format(FMT_COMPILE("<th scope=\"row\"{}>{}</th>"), css, row.cells[i])
                     : fmt::format(FMT_COMPILE("<td{}>{}</td>"), css, row.cells[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string Note(std::string_view html) { return fmt::format("<p class=\"note\">{}</p>\n", html); }

}  // namespace oscar
