// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration files, row by row, before tokenization. How a file is read:
//   .txt .md                one document, its bytes as they are
//   .jsonl .ndjson .json    one JSON object per line; or, if the first character is [, one array of
//                           objects
//   anything else           as .jsonl if its first non-blank line begins with {, else one document
// A row has exactly one of "text" (string), "messages" (list of {role, content}) and "input_ids"
// (list of integers); other keys are ignored. Blank lines, CRLF, a byte order mark and a missing
// last newline are fine. Trap: lines end at \n only; U+2028 and U+0085 belong to the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace oscar {

struct ChatMessage {
  std::string role;
  std::string content;
};

struct DataRow {
  std::string origin;  // "prompts.jsonl:12", or "notes.txt" for a file that is one document
  std::string where;   // the same with the whole path, for errors
  std::variant<std::string, std::vector<ChatMessage>, std::vector<int64_t>> value;
};

// Calls `use` with each row in order; returns the SHA-256 of the file. Throws InputError naming
// file and line for what is not UTF-8, not JSON or not a row.
std::string ReadDataRows(const std::filesystem::path& file,
                         const std::function<void(const DataRow&)>& use);

}  // namespace oscar
