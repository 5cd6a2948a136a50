// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts a row of a data file to token ids. Texts get the special tokens that the tokenizer adds.
// Chats are rendered by the model's template, which already contains the special tokens, so no
// others are added. Rows of ids stay unchanged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/text/data/chat_format.h"
#include "capture/text/data/data_rows.h"
#include "capture/text/tokenizer/tokenizer_files.h"

namespace oscar {

class RowEncoder {
 public:
  // `model_directory` has the chat template; empty: none. `tokenizer` is not opened if every row
  // has input_ids. `vocab_size` is the model's.
  RowEncoder(std::filesystem::path model_directory, ChatOptions chat, LazyTokenizer tokenizer,
             int64_t vocab_size);

  // These throw InputError naming `where` if a text has no tokenizer, if a chat has neither a
  // template nor a tokenizer with the tokens of ChatML (<|im_start|> and <|im_end|>), or if an id
  // is outside [0, vocab_size).
  std::vector<int32_t> Encode(const DataRow& row);
  std::vector<int32_t> EncodeText(const std::string& text, const std::string& where);
  // `generation_prompt`: the result ends where the model's answer begins.
  std::vector<int32_t> EncodeChat(const ChatRow& chat, const std::string& where,
                                  bool generation_prompt);

  const Tokenizer& tokenizer(const std::string& where) const;
  bool CanChat();  // whether chats can be rendered

  // How chats were rendered so far: "template" or "chatml"; "none" if there were none.
  const std::string& chat_format() const { return chat_format_name_; }
  const Json& chat_template() const { return chat_template_; }  // ChatFormat::Describe(), or null
  // Number of bytes or characters without a token so far; see Tokenizer::Encode().
  int64_t lost() const { return lost_; }
  bool looked_for_template() const { return looked_for_template_; }
  // Number of texts that already began with their tokenizer's leading tokens.
  int64_t beginnings_left_out() const { return beginnings_left_out_; }

 private:
  const std::optional<ChatFormat>& Format();
  bool HasChatMl() const;
  std::string RenderChat(const ChatRow& chat, const std::string& where, bool generation_prompt);
  std::string RenderChatMl(const ChatRow& chat, const std::string& where,
                           bool generation_prompt) const;
  template <class Id>
  std::vector<int32_t> CheckedIds(const std::vector<Id>& ids, const std::string& where) const;

  std::filesystem::path model_directory_;
  ChatOptions chat_;
  LazyTokenizer tokenizer_;
  int64_t vocab_size_;
  int64_t lost_ = 0;
  std::optional<std::vector<int32_t>> leading_;  // special tokens at the start of a text
  int64_t beginnings_left_out_ = 0;
  bool looked_for_template_ = false;
  std::optional<ChatFormat> chat_format_;
  std::string chat_format_name_ = "none";
  Json chat_template_ = nullptr;
  bool template_reads_time_ = false;
};

}  // namespace oscar
