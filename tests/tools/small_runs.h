// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments for calibrations that take a second or two.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace oscar {

inline std::string TinyModel() { return TestData("tiny-qwen3/config.json").parent_path(); }

// Returns the arguments of a short run of the bundled model to `output`.
inline ProgramStrings TinyRun(const std::filesystem::path& output) {
  return Words("% -o % --device cpu --tokens 3000 --error-rows 8", {TinyModel(), output});
}

inline ProgramStrings BundledRun() {
  return Words(
      "% --tokens 9000 --max-sequence 1500 --whole-documents --error-rows 8 --no-auto --clip fixed",
      {TinyModel()});
}

// Writes documents of token ids, for models without a tokenizer. Each id is next_id(document,
// position).
template <class NextId>
void WriteIdDocuments(const std::filesystem::path& path, const std::vector<int>& lengths,
                      NextId next_id) {
  std::ofstream file(path);
  for (int document = 0; document < std::ssize(lengths); ++document) {
    file << R"({"input_ids": [)";
    for (int i = 0; i < lengths[static_cast<size_t>(document)]; ++i)
      file << (i > 0 ? ", " : "") << next_id(document, i);
    file << "]}\n";
  }
}

// Writes documents whose ids, below `vocabulary`, follow a simple rule.
inline void WriteDocuments(const std::filesystem::path& path, const std::vector<int>& lengths,
                           int vocabulary) {
  WriteIdDocuments(path, lengths, [&](int document, int i) {
    return (i * i + 7 * document + i / 9) % vocabulary;
  });
}

// Writes documents of pseudorandom ids below `vocabulary`; `state` is the seed.
inline void WriteDrawnDocuments(const std::filesystem::path& path, const std::vector<int>& lengths,
                                unsigned vocabulary, unsigned state) {
  WriteIdDocuments(path, lengths, [&](int, int) {
    state = state * 1664525U + 1013904223U;
    return state / 65536 % vocabulary;
  });
}

// Returns arguments for a model without a tokenizer, with documents of different lengths. 42
// documents make five pieces; the documents of a piece run through the model together.
inline ProgramStrings FamilyRun(const std::string& name, const std::filesystem::path& scratch,
                                int documents = 42) {
  const std::filesystem::path data = scratch / "ids.jsonl";
  std::vector<int> lengths;
  for (int document = 0; document < documents; ++document)
    lengths.push_back(200 + document % 9 * 7);
  WriteDocuments(data, lengths, 64);
  return Words(
      "% --data % --whole-documents --quant-group-size 0 --sink-tokens 8 --recent-tokens 8 "
      "--min-tokens 1 --error-rows 8",
      {TestData("families/" + name + "/config.json").parent_path(), data});
}

}  // namespace oscar
