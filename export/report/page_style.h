// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The style sheet of the page: every colour is a variable with a light and a dark value; print is
// always light.
#pragma once

#include <string_view>

namespace oscar {

std::string_view PageStyle();

}  // namespace oscar
