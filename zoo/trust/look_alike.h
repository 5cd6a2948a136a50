// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds names that a reader may confuse. Names in a zoo are ASCII (NamePartProblem), so only
// differences in case, digits that look like letters, and similar pairs matter. Skeletons are as in
// Unicode Technical Standard 39, section 4, limited to those characters.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "zoo/store/zoo_name.h"

namespace oscar {

// Maps names that look alike to the same text: Qwen/Qwen3-8B and qvven/QWEN3_8B.
std::string LookSkeleton(std::string_view name);

// Returns whether `name` looks like `other` but differs from it. If `other` is ORG/*, compares only
// the organisation. No name looks like *.
bool LooksLike(std::string_view name, std::string_view other);

// Returns a warning about a new name that readers may confuse with one of `known`, or "". Compares
// its model with those of the same organisation. If the organisation is new, or two whole names
// look alike, also compares organisations. Warns if two look alike or are one edit apart. Models of
// one organisation may differ in a digit, because sizes and generations do.
std::string LookAlikeWarning(const ZooName& name, std::span<const ZooName> known);

}  // namespace oscar
