// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/page_shell.h"

#include <fmt/format.h>

#include "export/report/html.h"
#include "export/report/page_style.h"

namespace oscar {

std::string RenderPage(std::string_view title, std::string_view header_html,
                       const std::vector<PageSection>& sections, std::string_view footer_html,
                       const PageExtras& extras) {
  std::string navigation, body;
  for (const PageSection& section : sections) {
    if (section.content.empty()) continue;
    navigation += fmt::format("<a href=\"#{}\">{}</a>\n", section.id, section.short_name);
    body += fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-h\"><h2 id=\"{0}-h\">{1}</h2>\n",
                        section.id, section.heading);
    body += section.content + "</section>\n";
  }
  // The policy is a second lock: whatever a record holds, the page loads and runs nothing.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; {}base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{} · {}</title>\n<style>{}{}</style>\n</head>\n<body>\n"
      "<header>\n{}</header>\n<nav aria-label=\"Sections\">\n{}</nav>\n<main>\n{}</main>\n"
      "<footer>{}</footer>\n{}</body>\n</html>\n",
      extras.script.empty() ? "" : fmt::format("script-src '{}'; ", extras.script_hash),
      Html(title), Html(extras.kind), PageStyle(), extras.style, header_html, navigation, body,
      footer_html,
      extras.script.empty() ? "" : fmt::format("<script>{}</script>\n", extras.script));
}

}  // namespace oscar
