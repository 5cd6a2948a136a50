// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A recall task that any language model can read: passages of a few random tokens are hidden in the
// model's own words, and at the end each begins once more. To continue it a model has to find it;
// no grammar, no English and no skill beyond copying is asked for, so that small models do it too
// (induction: Olsson et al., arXiv 2209.11895). An answer counts if its token is likelier than
// those that stand at the same place of the other passages. What the exact model answers must
// be as good as certain, or the task measures the model.
#pragma once

#include <cstdint>
#include <vector>

#include "export/evaluate/needle.h"

namespace oscar {

inline constexpr const char* kPassagesTask = "passages";

// One sample of each of the `own_words`, equal in length to it: the end of the text makes room.
// Passages are made of tokens that occur in the texts, and spread over the first two thirds; a text
// has one for every 128 tokens, two to eight. Texts that are too short for two passages give none.
std::vector<NeedleSample> MakePassageSamples(const std::vector<std::vector<int32_t>>& own_words,
                                             uint64_t seed);

}  // namespace oscar
