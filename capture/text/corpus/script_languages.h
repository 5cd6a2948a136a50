// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Small grammars of languages in many scripts; "sentence" is the start symbol of each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "capture/text/corpus/grammar.h"

namespace oscar {

struct ScriptLanguage {
  std::string_view name;   // in the language itself
  std::string_view space;  // between sentences
  std::vector<Rule> rules;
};

std::span<const ScriptLanguage> ScriptLanguages();

}  // namespace oscar
