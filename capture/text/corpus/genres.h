// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One function per genre. `target_bytes` is a lower bound that the text exceeds by at most a
// paragraph; `variant` selects the topic, language or layout and wraps around.
#pragma once

#include <cstddef>
#include <string>

#include "capture/text/corpus/grammar.h"

namespace oscar {

using GenreFunction = std::string (*)(SplitMix64& random, size_t target_bytes, size_t variant);

std::string MakeProse(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeEvaluationProse(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeDialogue(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeCode(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeStructured(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeTables(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeNumbers(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeScripts(SplitMix64& random, size_t target_bytes, size_t variant);
std::string MakeRecall(SplitMix64& random, size_t target_bytes, size_t variant);

}  // namespace oscar
