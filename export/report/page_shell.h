// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of every page around its sections: style, navigation, and a content security policy
// that prevents the page from loading anything and from running any script but its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oscar {

struct PageSection {
  std::string id, short_name, heading;  // HTML; short_name is for the list of sections
  std::string content;                  // HTML; if empty, the section is left out
};

// Optional parts of a page.
struct PageExtras {
  std::string_view kind = "oscar report";  // plain text at the end of the title
  std::string_view style = {};             // CSS
  std::string_view script = {};            // the only script that runs; the page also works without
  std::string_view script_hash = {};       // "sha256-" and base64, for the content security policy
};

std::string RenderPage(std::string_view title /* text */, std::string_view header_html,
                       const std::vector<PageSection>& sections, std::string_view footer_html,
                       const PageExtras& extras = {});

}  // namespace oscar
