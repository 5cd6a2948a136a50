// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of which keys are made. Samples depend on them, so changing a list changes every needle
// result of a seed.
#pragma once

#include <span>
#include <string_view>

namespace oscar {

std::span<const std::string_view> NeedleAdjectives();  // lower case ASCII, distinct
std::span<const std::string_view> NeedleNouns();       // lower case ASCII, distinct

}  // namespace oscar
