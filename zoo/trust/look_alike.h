// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names that a reader may confuse. Names of a zoo are ASCII (NamePartProblem), so letters of other
// scripts cannot occur. That leaves upper and lower case, digits for letters and the like (the
// skeletons of Unicode Technical Standard 39, section 4, limited to those characters).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "zoo/store/zoo_name.h"

namespace oscar {

// Equal for names that look alike: Qwen/Qwen3-8B and qvven/QWEN3_8B.
std::string LookSkeleton(std::string_view name);

// Whether `name` looks like `other` but differs from it. `other` may be ORG/*, which stands for the
// organisation; * matches no look-alike.
bool LooksLike(std::string_view name, std::string_view other);

// Warns of a new name that readers may confuse with one of `known`: its organisation, or its model
// in a known organisation, looks like another or is one edit away from it. A different digit in the
// same organisation does not count, because sizes and generations differ so. Returns a sentence, or
// "".
std::string LookAlikeWarning(const ZooName& name, std::span<const ZooName> known);

}  // namespace oscar
