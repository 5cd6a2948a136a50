// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of the code genre, one file per group of languages. Every language has the symbols
// <language>_head and <language>_item; identifiers come from IdentifierRules().
#pragma once

#include <span>

#include "capture/text/corpus/grammar.h"

namespace oscar {

std::span<const Rule> IdentifierRules();
std::span<const Rule> CompiledLanguageRules();   // cpp, js
std::span<const Rule> ScriptingLanguageRules();  // python, sql, shell

}  // namespace oscar
