// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of every page around its sections: style, navigation, and the policy that keeps it
// from loading or running anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oscar {

struct PageSection {
  std::string id, short_name, heading;  // html; the short name stands in the list of sections
  std::string content;                  // html; empty: left out
};

// Optional parts of a page.
struct PageExtras {
  std::string_view kind = "oscar report";  // text; ends the title
  std::string_view style = {};             // css
  std::string_view script = {};            // the only one that runs; the page is readable without
  std::string_view script_hash = {};       // "sha256-" and base64, by which the policy knows it
};

std::string RenderPage(std::string_view title /* text */, std::string_view header_html,
                       const std::vector<PageSection>& sections, std::string_view footer_html,
                       const PageExtras& extras = {});

}  // namespace oscar
