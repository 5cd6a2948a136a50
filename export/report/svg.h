// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts that all charts share: text, and the figure around an <svg> that scales with the page.
#pragma once

#include <string>
#include <string_view>

namespace oscar {

// Limits of labels in charts: characters, and chart units per character at the largest text size.
inline constexpr size_t kMaxLabelCharacters = 21;
inline constexpr double kCharacterWidth = 7.2;

// Baseline of a title at a chart's top. Fonts reach up to 1.07 of their size above it (Noto Sans).
inline constexpr double kTopTitleBaseline = 13;

// Returns <text>. `text` is escaped, and cut to kMaxLabelCharacters if `css` has "label".
std::string SvgText(double x, double y, std::string_view css, std::string_view text);

struct FigureInfo {
  std::string id;           // unique on the page
  std::string title, note;  // HTML
  std::string description;  // plain text
  std::string scale;        // scale of the values, "log" or "linear", for tests
};

// Returns <figure> with a caption, `svg_body` in a viewBox of that size, <title> and <desc>.
std::string Figure(const FigureInfo& info, double width, double height, std::string_view svg_body);

// Puts charts side by side if there is room.
std::string FigureRow(std::string_view figures_html);

}  // namespace oscar
