// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From a chat to the text a model was trained on: which template of the model directory, and what
// variables it sees, as transformers' apply_chat_template. Trap: what it renders holds its own
// beginning-of-sequence token, so it is encoded without special tokens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/text/data_rows.h"
#include "capture/text/template/chat_template.h"

namespace oscar {

struct ChatOptions {
  std::filesystem::path template_file;  // empty: the model's
  // "name=value": the value as JSON or as a Python literal (true, True, null, 3), else text.
  std::vector<std::string> variables;
  // What strftime_now tells, "2026-01-31" or "2026-01-31T12:00:00". Not the day of the run, so that
  // equal runs give equal text.
  std::string date = "2026-01-01";
};

class ChatFormat {
 public:
  // The template: options.template_file; else chat_template.jinja, chat_template of
  // tokenizer_config.json (a string, or a list of named ones: "default", and "tool_use" where a
  // chat has tools), chat_template.json of the model directory, or the keys of a GGUF, if that is
  // the model. Nothing: there is none. Throws
  // UsageError for a malformed variable or date, and for variables without a template; InputError
  // for a template that does not parse.
  static std::optional<ChatFormat> Find(const std::filesystem::path& model_directory,
                                        const ChatOptions& options);

  struct Rendering {
    std::string text;
    bool reads_time = false;
  };
  // `generation_prompt`: up to where an answer of the model begins. Throws InputError naming
  // `where`, the template and its line.
  // Content that is a list of parts is joined, unless the template shows that it reads such lists.
  Rendering Render(const ChatRow& chat, const std::string& where,
                   bool generation_prompt = false) const;

  // Name, SHA-256 and variables; the date too, if `reads_time`. For the artifact.
  Json Describe(bool reads_time) const;

 private:
  ChatFormat() = default;
  bool ReadsParts(const ChatTemplate& source, ChatTemplate::Variables variables) const;

  std::optional<ChatTemplate> default_, with_tools_;
  ChatTemplate::Variables special_tokens_, variables_;  // the latter win
  jinja::CivilTime now_;
  Json given_variables_;
  std::string date_;
};

}  // namespace oscar
