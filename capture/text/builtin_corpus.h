// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The texts that are used when the user gives none, one to calibrate on, one to judge with and one
// to hide needles in: the files of corpus/, which are part of the program. Versions are stored in
// artifacts and reports, so a change of a single byte is a new version; a test pins the digests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oscar {

inline constexpr int kBuiltinCorpusVersion = 1;
inline constexpr int kBuiltinEvaluationVersion = 1;

struct BuiltinDocument {
  std::string name;  // genre and number: "prose-3"
  std::string text;  // UTF-8
};

// Interleaved by genre: any 20,000 tokens from the front contain every genre.
std::vector<BuiltinDocument> BuiltinCorpus();

// The same genres, prose about other topics: what is in common is far below the limits of overlap.h
// (tested).
std::vector<BuiltinDocument> BuiltinEvaluationCorpus();

// Prose of the evaluation topics in paragraphs, without titles. At 5.5 bytes to a word, and a token
// or more for each, it suffices for prompts of 131,072 tokens; longer ones repeat it (haystack.h).
std::string_view BuiltinHaystack();

// SHA-256 over names and texts, each followed by a NUL.
std::string BuiltinCorpusDigest(const std::vector<BuiltinDocument>& corpus);

}  // namespace oscar
