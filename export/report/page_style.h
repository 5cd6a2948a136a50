// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The style sheet of the page: every colour is a variable with a light and a dark value; print is
// always light.
#pragma once

#include <string_view>

namespace oscar {

std::string_view PageStyle();

// Parts of it, for a chart outside the page: the rules of what is inside an <svg>, and the rule
// that gives the variables their light values.
std::string_view ChartRules();
std::string_view LightColours();

}  // namespace oscar
