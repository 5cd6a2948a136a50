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
  size_t size = 16'384;  // includes the markup around the sections
  for (const PageSection& section : sections) size += section.content.size() + 256;
  std::string page;
  page.reserve(size + PageStyle().size() + header_html.size() + footer_html.size());
  // A second safeguard: whatever a record contains, the policy forbids loading or running anything.
  page += fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; {}base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{} · {}</title>\n",
      extras.script.empty() ? "" : fmt::format("script-src '{}'; ", extras.script_hash),
      Html(title), Html(extras.kind));
  page.append("<style>").append(PageStyle()).append(extras.style).append("</style>\n");
  page.append("</head>\n<body>\n<header>\n").append(header_html);
  page += "</header>\n<nav aria-label=\"Sections\">\n";
  for (const PageSection& section : sections) {
    if (section.content.empty()) continue;
    page += fmt::format("<a href=\"#{}\">{}</a>\n", section.id, section.short_name);
  }
  page += "</nav>\n<main>\n";
  for (const PageSection& section : sections) {
    if (section.content.empty()) continue;
    page += fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-h\"><h2 id=\"{0}-h\">{1}</h2>\n",
                        section.id, section.heading);
    page.append(section.content).append("</section>\n");
  }
  page.append("</main>\n<footer>").append(footer_html).append("</footer>\n");
  if (!extras.script.empty()) page.append("<script>").append(extras.script).append("</script>\n");
  return page += "</body>\n</html>\n";
}

}  // namespace oscar
