// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/svg.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include "export/report/axis.h"
#include "export/report/html.h"

namespace oscar {

std::string SvgText(double x, double y, std::string_view css, std::string_view text) {
  const bool is_label = css.find("label") != css.npos;
  return fmt::format(FMT_COMPILE("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>"), Coordinate(x),
                     Coordinate(y), css,
                     is_label ? HtmlCut(text, kMaxLabelCharacters) : Html(text));
}

std::string Figure(const FigureInfo& info, double width, double height, std::string_view svg_body) {
  std::string plain;  // the caption without markup
  bool in_tag = false;
  for (char c : info.title) {
    if (c == '<') in_tag = true;
    if (!in_tag) plain += c;
    if (c == '>') in_tag = false;
  }
  return fmt::format(
      "<figure class=\"chart\"><figcaption><b>{0}</b>{1}</figcaption>\n<svg viewBox=\"0 0 {2} "
      "{3}\" role=\"img\" aria-labelledby=\"{4}-t {4}-d\" data-scale=\"{5}\"><title "
      "id=\"{4}-t\">{6}</title><desc id=\"{4}-d\">{7}</desc>\n{8}</svg></figure>\n",
      info.title, info.note.empty() ? "" : " <span>" + info.note + "</span>", Coordinate(width),
      Coordinate(height), info.id, info.scale, plain, Html(info.description), svg_body);
}

std::string FigureRow(std::string_view figures_html) {
  if (figures_html.empty()) return {};
  return fmt::format("<div class=\"charts\">\n{}</div>\n", figures_html);
}

}  // namespace oscar
