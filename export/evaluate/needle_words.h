// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The words from which keys are made. Changing a list changes all needle samples, and thus all
// needle results for a given seed.
#pragma once

#include <span>
#include <string_view>

namespace oscar {

std::span<const std::string_view> NeedleAdjectives();  // lower case ASCII, distinct
std::span<const std::string_view> NeedleNouns();       // lower case ASCII, distinct

}  // namespace oscar
