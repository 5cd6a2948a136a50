// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The texts that are used when the user gives none, one to calibrate on, one to judge with and one
// to hide needles in: the files of corpus/, which are part of the program and are not touched
// before they are used. Versions are stored in artifacts and reports, so a change of a single byte
// is a new version; a test pins the digests.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

inline constexpr int kBuiltinCorpusVersion = 2;
inline constexpr int kBuiltinEvaluationVersion = 2;

// Kinds of text that both corpora have; "long" has documents of 8,000 to 20,000 tokens.
inline constexpr std::array<std::string_view, 7> kBuiltinDomains = {
    "prose", "code", "chat", "mathematics", "tables", "languages", "long"};

struct BuiltinDocument {
  std::string_view domain;  // one of kBuiltinDomains
  std::string_view name;    // domain and number: "prose-3"
  std::string_view source;  // a package of corpus/sources.tsv; "oscar:" and a name: our own
  std::string_view text;    // UTF-8
};

// Domains in turn: prose-1, code-1, ..., prose-2, code-2, ... until a domain has no more.
std::vector<BuiltinDocument> BuiltinCorpus();

// The same domains, other documents and, except for our own texts and one catalogue of translated
// messages, other packages: what is in common is far below the limits of overlap.h (tested).
std::vector<BuiltinDocument> BuiltinEvaluationCorpus();

// Generated prose in paragraphs, without titles. At 5.5 bytes to a word, and a token or more for
// each, it suffices for prompts of 131,072 tokens; longer ones repeat it (haystack.h).
std::string_view BuiltinHaystack();

// SHA-256 over names and texts, each followed by a NUL.
std::string BuiltinCorpusDigest(const std::vector<BuiltinDocument>& corpus);

}  // namespace oscar
