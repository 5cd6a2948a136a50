// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Renders a chat as the text that a model was trained on. Like transformers' apply_chat_template,
// it uses the template and the variables that the model directory gives. Trap: the rendered text
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
  // Finds the chat template. The first of these that exists is used:
  //   options.template_file
  //   chat_template.jinja in the model directory
  //   chat_template in tokenizer_config.json, or in the equivalent keys of a GGUF: a string, or a
  //     list of named templates, of which "default" and (for chats with tools) "tool_use" are used
  //   chat_template in chat_template.json
  // Returns nothing if there is no template. Throws UsageError for a malformed variable or date,
  // and for variables without a template; InputError for a template that does not parse.
  static std::optional<ChatFormat> Find(const std::filesystem::path& model_directory,
                                        const ChatOptions& options);

  struct Rendering {
    std::string text;
    bool reads_time = false;
  };
  // `generation_prompt`: the result ends where the model's answer begins. If the content of a
  // message is a list of parts and the template cannot print such lists, their texts are joined.
  // Throws InputError naming `where`, the template and its line.
  Rendering Render(const ChatRow& chat, const std::string& where,
                   bool generation_prompt = false) const;

  // Returns the template's SHA-256 and the variables, for the artifact; also the date if
  // `reads_time`.
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
