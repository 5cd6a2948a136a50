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

using GenreFunction = std::string (*)(CorpusRandom& random, size_t target_bytes, size_t variant);

std::string MakeProse(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeEvaluationProse(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeDialogue(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeCode(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeStructured(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeTables(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeNumbers(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeScripts(CorpusRandom& random, size_t target_bytes, size_t variant);
std::string MakeRecall(CorpusRandom& random, size_t target_bytes, size_t variant);

}  // namespace oscar
