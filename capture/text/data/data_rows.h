// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration files, row by row, before tokenization. How a file is read:
//   .txt .md                one document, its bytes as they are
//   .jsonl .ndjson .json    one JSON object per line; or, if the first character is [, one array of
//                           objects
//   anything else           as .jsonl if its first non-blank line begins with {, else one document
//   any of these + .gz .zst the same, unpacked in memory
// The first of these columns that is not null determines the kind of a row (the order of NVIDIA
// ModelOpt):
//   messages, conversations   a chat: list of {role, content, ...} or of ShareGPT's {from, value};
//                             with it `tools` and `documents`, lists or JSON text, if there are any
//   prompt and one of         text joined by a newline, or, if both are lists of messages, a chat
//   completion, response,
//   output
//   text                      a text
//   input_ids                 a list of integers; refused together with any of the others. It may
//                             have an attention_mask (0: padding, which is left out), and loss_mask
//                             or labels (0 or -100: excludes the token's query from statistics)
//   instruction and one of    a chat of a question, with `input` (or `context`) on the next line,
//   output, response,         and its answer, after a `system` message if there is one. A model
//   completion                without chats gets the text that Stanford Alpaca was trained on
// Other keys are ignored. A row whose columns are all null has no value. Blank lines, CRLF, a byte
// order mark and a missing last newline are fine. Trap: lines end at \n only; U+2028 and U+0085
// belong to the text.
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

// A chat as the template sees it: all members of all messages, in the order of the file.
struct ChatRow {
  jinja::Value messages;   // a list of dicts, each with a role
  jinja::Value tools;      // None if not given
  jinja::Value documents;  // None if not given
  std::string text = {};   // used by models without chats; empty: the row has no plain text
};

struct IdsRow {
  std::vector<int64_t> ids;
  std::vector<uint8_t> counted;  // [ids], 0: the token's query is excluded; empty: none is
  int64_t padding = 0;           // number of tokens that attention_mask removed
};

struct DataRow {
  std::string origin;  // "prompts.jsonl:12", or "notes.txt" for a file that is one document
  std::string where;   // the same with the full path, for errors
  std::variant<std::monostate, std::string, ChatRow, IdsRow> value;
};

// Calls `use` with each row in order and returns the SHA-256 of the file. Throws InputError naming
// file and line for text that is not UTF-8, not JSON or not a row, and for Parquet, Arrow and
// archives.
std::string ReadDataRows(const MappedFile& file, const std::function<void(const DataRow&)>& use);
inline std::string ReadDataRows(const std::filesystem::path& file,
                                const std::function<void(const DataRow&)>& use) {
  return ReadDataRows(MappedFile::Open(file), use);
}

}  // namespace oscar
