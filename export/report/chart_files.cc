// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses only our own markup (svg.cc) and style sheet (page_style.cc).
#include "export/report/chart_files.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string_view>

#include "capture/files/replace_all.h"
#include "export/report/page_style.h"
#include "export/report/report_page.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr double kTitleHeight = 20;  // height above the chart, in chart units

// Returns the text between `begin` and `end`, searched from `from` on, and moves `from` past `end`.
// Returns nothing and sets `from` to npos if there is none.
std::string_view Between(std::string_view text, std::string_view begin, std::string_view end,
                         size_t& from) {
  const size_t first = text.find(begin, from);
  const size_t last = first == text.npos ? first : text.find(end, first + begin.size());
  from = last == text.npos ? last : last + end.size();
  return last == text.npos ? std::string_view()
                           : text.substr(first + begin.size(), last - first - begin.size());
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Returns the values of CSS variables by name, such as "--fg": "#1a1f26".
std::map<std::string_view, std::string_view> Variables(std::string_view rule) {
  size_t from = 0;
  std::map<std::string_view, std::string_view> variables;
  for (std::string_view declaration : Split(Between(rule, "{", "}", from), ';')) {
    if (declaration.starts_with('\n')) declaration.remove_prefix(1);
    const size_t colon = declaration.find(':');
    if (declaration.starts_with("--"))
      variables[declaration.substr(0, colon)] = declaration.substr(colon + 1);
  }
  return variables;
}

std::string Resolved(std::string_view rule) {
  std::string resolved(rule);
  for (const auto& [name, value] : Variables(LightColours()))
    resolved = ReplaceAll(std::move(resolved), fmt::format("var({})", name), value);
  return resolved;
}

// Restricts the selectors of a rule to the series of class `of`. The result selects elements within
// the series, and elements that have its class themselves.
std::string OfSeries(std::string_view selectors, std::string_view of) {
  std::string list;
  for (const std::string_view selector : Split(selectors, ',')) {
    const bool element = selector.front() != '.';  // only a class can follow ".s0" directly
    list += fmt::format("{}{} {}, {}{}", list.empty() ? "" : ", ", of, selector,
                        element ? selector : of, element ? of : selector);
  }
  return list;
}

// Returns the rules of charts with all variables replaced.
std::string ChartStyle() {
  std::string style;
  std::vector<std::pair<std::string_view, std::string>> colours, coloured;  // selector, value
  const std::string rules = ReplaceAll(std::string(ChartRules()), "\n", "");
  for (const std::string_view rule : Split(rules, '}')) {
    const size_t brace = rule.find('{');
    if (brace == rule.npos) continue;
    const std::string_view selectors = rule.substr(0, brace);
    const std::string body = Resolved(rule.substr(brace + 1));
    if (body.starts_with("--c:")) {
      colours.emplace_back(selectors, body.substr(4));
    } else if (body.find("var(--c)") != body.npos) {
      coloured.emplace_back(selectors, body);
    } else if (selectors != "svg") {  // "svg" only places the chart on its page
      style += fmt::format("{}{{{}}}\n", selectors, body);
    }
  }
  // These rules must come before those in `style`, which change widths and fills. Both have the
  // same specificity, so later rules win.
  std::string of_series;
  for (const auto& [selectors, body] : coloured)
    for (const auto& [series, colour] : colours)
      of_series += fmt::format("{}{{{}}}\n", OfSeries(selectors, series),
                               ReplaceAll(body, "var(--c)", colour));
  return of_series + style;
}

// `svg`: a chart of the page, from the attributes of its <svg> to its end tag.
ChartFile FileOf(std::string_view svg, std::string_view style) {
  size_t at = 0;
  const std::vector<std::string_view> box = Split(Between(svg, "viewBox=\"", "\"", at), ' ');
  const std::string_view id = Between(svg, "aria-labelledby=\"", "-t ", at);
  const std::string_view title = Between(svg, "-t\">", "</title>", at);
  OSCAR_CHECK(box.size() == 4 && at != svg.npos);
  const double height = std::strtod(std::string(box[3]).c_str(), nullptr) + kTitleHeight;
  const std::string_view body = svg.substr(at);
  return {
      fmt::format("{}.svg", id),
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                  "viewBox=\"0 -{2} {0} {1}\" font-family=\"sans-serif\">\n<title>{3}</title>\n"
                  "<style>\n{4}</style>\n<rect y=\"-{2}\" width=\"100%\" height=\"100%\" "
                  "fill=\"#fff\"/>\n<text y=\"-6\" font-weight=\"bold\">{3}</text>\n{5}</svg>\n",
                  box[2], height, kTitleHeight, title, style, body)};
}

}  // namespace

std::vector<ChartFile> ChartFiles(const Json& report) {
  const JsonText text(report, "report");
  const std::string style = ChartStyle();
  std::vector<ChartFile> files;
  for (const PageSection& section : ReportSections(text.root())) {
    for (size_t at = 0; at != std::string::npos;) {
      const std::string_view svg = Between(section.content, "<svg ", "</svg>", at);
      if (!svg.empty()) files.push_back(FileOf(svg, style));
    }
  }
  return files;
}

}  // namespace oscar
