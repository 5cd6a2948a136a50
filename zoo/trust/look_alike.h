// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds names that a reader may confuse. Names in a zoo are ASCII (NamePartProblem), so only upper
// and lower case, digits for letters and similar replacements matter (the skeletons of Unicode
// Technical Standard 39, section 4, limited to those characters).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "zoo/store/zoo_name.h"

namespace oscar {

// Maps names that look alike to the same text: Qwen/Qwen3-8B and qvven/QWEN3_8B.
std::string LookSkeleton(std::string_view name);

// Whether `name` looks like `other` but differs from it. If `other` is ORG/*, only the organisation
// is compared. Nothing looks like *.
bool LooksLike(std::string_view name, std::string_view other);

// Returns a warning about a new name that readers may confuse with one of `known`, or "". Its
// organisation, or its model in a known organisation, looks like another or is one edit away from
// it. A different digit in the same organisation does not count, because sizes and generations
// differ in digits.
std::string LookAlikeWarning(const ZooName& name, std::span<const ZooName> known);

}  // namespace oscar
