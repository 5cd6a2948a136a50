// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The style sheet of the page. Every colour is a variable with a light and a dark value; print is
// always light.
#pragma once

#include <string_view>

namespace oscar {

std::string_view PageStyle();

// Parts of the style sheet for charts outside the page. ChartRules: the rules for what is inside an
// <svg>. LightColours: the rule that sets the colour variables to their light values.
std::string_view ChartRules();
std::string_view LightColours();

}  // namespace oscar
