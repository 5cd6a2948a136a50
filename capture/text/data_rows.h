// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration files, row by row, before tokenization. How a file is read:
//   .txt .md                one document, its bytes as they are
//   .jsonl .ndjson .json    one JSON object per line; or, if the first character is [, one array of
//                           objects
//   anything else           as .jsonl if its first non-blank line begins with {, else one document
// What a row is, by the first of these columns that it has and that is not null (the order of
// NVIDIA ModelOpt):
//   messages, conversations   a chat: list of {role, content, ...} or of ShareGPT's {from, value};
//                             with it `tools` and `documents`, lists or JSON text, if there are any
//   prompt and one of         text joined by a newline, or, if both are lists of messages, a chat
//   completion, response,
//   output
//   text                      a text
//   input_ids                 a list of integers; refused beside any of the others
// Other keys are ignored. Blank lines, CRLF, a byte order mark and a missing last newline are fine.
// Trap: lines end at \n only; U+2028 and U+0085 belong to the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "capture/files/mapped_file.h"
#include "capture/text/template/value.h"

namespace oscar {

// As the template sees it: every member of a message, in the order of the file.
struct ChatRow {
  jinja::Value messages;   // a list of dicts, each with a role
  jinja::Value tools;      // None: not given
  jinja::Value documents;  // None: not given
};

struct DataRow {
  std::string origin;  // "prompts.jsonl:12", or "notes.txt" for a file that is one document
  std::string where;   // the same with the whole path, for errors
  std::variant<std::string, ChatRow, std::vector<int64_t>> value;
};

// Calls `use` with each row in order; returns the SHA-256 of the file. Throws InputError naming
// file and line for what is not UTF-8, not JSON or not a row.
std::string ReadDataRows(const MappedFile& file, const std::function<void(const DataRow&)>& use);
inline std::string ReadDataRows(const std::filesystem::path& file,
                                const std::function<void(const DataRow&)>& use) {
  return ReadDataRows(MappedFile::Open(file), use);
}

}  // namespace oscar
