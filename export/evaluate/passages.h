// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A recall task for any language model. Passages of a few random tokens are hidden in a text that
// the model generated, and at the end the beginning of each is repeated. To continue one, a model
// has to find it. The task needs no grammar, no English and no skill except copying, so small
// models can do it too (induction: Olsson et al., arXiv 2209.11895). An answer counts if its token
// is likelier than the tokens at the same place of the other passages. The exact model must be
// almost certain of its answers; otherwise the task measures the model.
#pragma once

#include <cstdint>
#include <vector>

#include "export/evaluate/needle.h"

namespace oscar {

inline constexpr const char* kPassagesTask = "passages";

// Makes one sample of equal length for each of the `own_words`, cutting the end of the text to make
// room. Passages consist of tokens from the texts and are spread over the first two thirds. A text
// has one passage for every 128 tokens, two to eight. Texts too short for two passages give none.
std::vector<NeedleSample> MakePassageSamples(const std::vector<std::vector<int32_t>>& own_words,
                                             uint64_t seed);

}  // namespace oscar
