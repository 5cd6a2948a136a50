// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A recall task for any language model. Passages of a few random tokens are hidden in a text that
// the model generated. At the end of the text, the beginning of each passage is repeated. To
// continue it, the model must find the passage. The task needs no language and no skill except
// copying, so small models can do it too (induction: Olsson et al., arXiv 2209.11895).
//
// An answer counts as recalled if its token is likelier than the tokens at the same place of the
// other passages. The model must be almost certain with an exact cache; otherwise the task measures
// the model, not the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "export/evaluate/needle.h"

namespace oscar {

inline constexpr const char* kPassagesTask = "passages";

// Makes a sample from each text in `own_words`. A sample is as long as its text: the end of the
// text is cut off to make room. A text gets one passage for every 128 tokens, at most eight, within
// its first two thirds. Passages consist of tokens from all texts. A text that is too short for two
// passages gives no sample.
std::vector<NeedleSample> MakePassageSamples(const std::vector<std::vector<int32_t>>& own_words,
                                             uint64_t seed);

}  // namespace oscar
