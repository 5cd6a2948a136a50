// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads calibration files row by row, before tokenization. The extension of a file determines how
// it is read ("first character": the first that is not blank):
//   .txt .md                one document: the whole file, unchanged
//   .jsonl .ndjson .json    one JSON object per line; or one array of objects, if the first
//                           character is [
//   anything else           like .jsonl if the first character is {, otherwise one document
//   any of these + .gz .zst the same, unpacked in memory
// The first of these columns that is not null determines the kind of a row (the order of NVIDIA
// ModelOpt):
//   messages, conversations   a chat: a list of {role, content, ...}, or of {from, value}
//                             (ShareGPT). `tools` and `documents` may be added, as lists or as the
//                             JSON text of lists
//   prompt and one of         a text: both, joined by a newline; or a chat, if both are lists of
//   completion, response,     messages
//   output
//   text                      a text
//   input_ids                 a list of token ids; refused together with any column above. There
//                             may be an attention_mask (0: padding, which is left out), and
//                             loss_mask or labels (0 or -100: statistics exclude the token's query)
//   instruction and one of    a chat: a question, with `input` (or `context`) on its next line, and
//   output, response,         the answer, after a `system` message if there is one. A model without
//   completion                chats gets the text format of Stanford Alpaca instead
// Other columns are ignored. A row in which these columns are all null has no value. Blank lines,
// CRLF, a byte order mark and a missing last newline are accepted. Trap: lines end at \n only;
// U+2028 and U+0085 belong to the text.
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
// file and line for text that is not UTF-8 or not JSON, and for malformed rows. Parquet, Arrow,
// zip, bzip2 and xz files are refused with an InputError that says what to do.
std::string ReadDataRows(const MappedFile& file, const std::function<void(const DataRow&)>& use);
inline std::string ReadDataRows(const std::filesystem::path& file,
                                const std::function<void(const DataRow&)>& use) {
  return ReadDataRows(MappedFile::Open(file), use);
}

}  // namespace oscar
