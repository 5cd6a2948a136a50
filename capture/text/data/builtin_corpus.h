// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The texts that are used if the user gives none: one corpus for calibration, one for evaluation,
// and one haystack for needle prompts. They are the files in corpus/, linked into the program
// unchanged. Artifacts and reports store their versions, so changing a single byte requires a new
// version; a test pins the digests.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

inline constexpr int kBuiltinCorpusVersion = 2;
inline constexpr int kBuiltinEvaluationVersion = 2;

// Kinds of text in both corpora. "long" has documents of 8,000 to 20,000 tokens.
inline constexpr std::array<std::string_view, 7> kBuiltinDomains = {
    "prose", "code", "chat", "mathematics", "tables", "languages", "long"};

struct BuiltinDocument {
  std::string_view domain;  // one of kBuiltinDomains
  std::string_view name;    // domain and number: "prose-3"
  std::string_view source;  // a package in corpus/sources.tsv, or "oscar:" and the name of our own
                            // text
  std::string_view text;    // UTF-8
};

// Returns documents of all domains in turn: prose-1, code-1, ..., prose-2, code-2, ... Domains
// without more documents are left out.
std::vector<BuiltinDocument> BuiltinCorpus();

// Returns other documents of the same domains. They come from other packages than BuiltinCorpus,
// except for our own texts and one catalogue of translated messages. The overlap with BuiltinCorpus
// is far below the limits of overlap.h (tested).
std::vector<BuiltinDocument> BuiltinEvaluationCorpus();

// Generated prose in paragraphs, without titles. With 5.5 bytes per word, and at least one token
// per word, it suffices for prompts of 131,072 tokens; longer prompts repeat it (haystack.h).
std::string_view BuiltinHaystack();

// SHA-256 of names and texts, each followed by a NUL.
std::string BuiltinCorpusDigest(const std::vector<BuiltinDocument>& corpus);

}  // namespace oscar
