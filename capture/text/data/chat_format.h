// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts a chat to the text that a model was trained on: finds the template of the model
// directory and its variables, like transformers' apply_chat_template. Trap: the rendered text
// contains its own beginning-of-sequence token, so encode it without special tokens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/text/data/data_rows.h"
#include "capture/text/template/chat_template.h"

namespace oscar {

struct ChatOptions {
  std::filesystem::path template_file;  // empty: the model's template
  // "name=value". The value is JSON or a Python literal (true, True, null, 3), otherwise text.
  std::vector<std::string> variables;
  // The result of strftime_now: "2026-01-31" or "2026-01-31T12:00:00". It is fixed, so that equal
  // runs give equal text.
  std::string date = "2026-01-01";
};

class ChatFormat {
 public:
  // Finds the template: options.template_file; otherwise chat_template.jinja, chat_template in
  // tokenizer_config.json (a string, or a list of named ones: "default", and "tool_use" if a chat
  // has tools), chat_template.json in the model directory, or the keys of a GGUF. Returns nothing
  // if there is none. Throws UsageError for a malformed variable or date, and for variables without
  // a template; InputError for a template that does not parse.
  static std::optional<ChatFormat> Find(const std::filesystem::path& model_directory,
                                        const ChatOptions& options);

  struct Rendering {
    std::string text;
    bool reads_time = false;
  };
  // `generation_prompt`: the result ends where the model's answer begins. Throws InputError naming
  // `where`, the template and its line. Content that is a list of parts is joined, unless the
  // template turns out to read such lists.
  Rendering Render(const ChatRow& chat, const std::string& where,
                   bool generation_prompt = false) const;

  // Describes name, SHA-256 and variables for the artifact, and the date if `reads_time`.
  Json Describe(bool reads_time) const;

 private:
  ChatFormat() = default;
  bool ReadsParts(const ChatTemplate& source, ChatTemplate::Variables variables) const;

  std::optional<ChatTemplate> default_, with_tools_;
  ChatTemplate::Variables special_tokens_, variables_;  // variables_ take priority
  jinja::CivilTime now_;
  Json given_variables_;
  std::string date_;
};

}  // namespace oscar
