// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/row_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "capture/text/data/message_parts.h"
#include "capture/text/data/packing.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kTurnStart = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>";

}  // namespace

RowEncoder::RowEncoder(std::filesystem::path model_directory, ChatOptions chat,
                       LazyTokenizer tokenizer, int64_t vocab_size)
    : model_directory_(std::move(model_directory)),
      chat_(std::move(chat)),
      tokenizer_(std::move(tokenizer)),
      vocab_size_(vocab_size) {}

const Tokenizer& RowEncoder::tokenizer(const std::string& where) const {
  if (tokenizer_) return *tokenizer_;
  for (const char* other : {"tiktoken.model", "tekken.json", "vocab.txt"}) {
    if (model_directory_.empty() || !std::filesystem::exists(model_directory_ / other)) continue;
    throw InputError(fmt::format(
        "{}: this row is text, but the model directory has no tokenizer.json, only {}, which is "
        "not supported; write a tokenizer.json with transformers, "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...), or give rows with \"input_ids\"",
        where, other));
  }
  throw InputError(where +
                   ": this row is text, but the model directory has no tokenizer.json; add it, or "
                   "give rows with \"input_ids\"");
}

std::vector<int32_t> RowEncoder::Encode(const DataRow& row) {
  if (const auto* text = std::get_if<std::string>(&row.value)) return EncodeText(*text, row.where);
  if (const auto* chat = std::get_if<ChatRow>(&row.value)) {
    if (!chat->text.empty() && !CanChat()) return EncodeText(chat->text, row.where);
    return EncodeChat(*chat, row.where, /*generation_prompt=*/false);
  }
  return CheckedIds(std::get<IdsRow>(row.value).ids, row.where);
}

std::vector<int32_t> RowEncoder::EncodeText(const std::string& text, const std::string& where) {
  const Tokenizer& encoder = tokenizer(where);
  // An empty document stays empty, even if the tokenizer would add a BOS.
  if (text.empty()) return {};
  std::vector<int32_t> ids = encoder.Encode(text, /*add_special_tokens=*/true, &lost_);
  if (!leading_) leading_ = LeadingSpecialTokens(encoder);
  // A text that already contains the leading tokens gets them only once, like a rendered chat.
  const std::span all(ids);
  const size_t own = leading_->size();
  if (own > 0 && all.size() >= 2 * own &&
      std::ranges::equal(all.first(own), all.subspan(own, own)) &&
      std::ranges::equal(all.first(own), *leading_)) {
    ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(own));
    ++beginnings_left_out_;
  }
  return CheckedIds(ids, where);
}

std::vector<int32_t> RowEncoder::EncodeChat(const ChatRow& chat, const std::string& where,
                                            bool generation_prompt) {
  const Tokenizer& encoder = tokenizer(where);
  return CheckedIds(encoder.Encode(RenderChat(chat, where, generation_prompt), false, &lost_),
                    where);
}

const std::optional<ChatFormat>& RowEncoder::Format() {
  if (!looked_for_template_) {
    looked_for_template_ = true;
    chat_format_ = ChatFormat::Find(model_directory_, chat_);
  }
  return chat_format_;
}

bool RowEncoder::HasChatMl() const {
  return tokenizer_ && (*tokenizer_).IsAddedToken(kTurnStart) &&
         (*tokenizer_).IsAddedToken(kTurnEnd);
}

bool RowEncoder::CanChat() { return tokenizer_ && (Format() || HasChatMl()); }

std::string RowEncoder::RenderChat(const ChatRow& chat, const std::string& where,
                                   bool generation_prompt) {
  if (!Format()) {
    std::string text = RenderChatMl(chat, where, generation_prompt);
    chat_format_name_ = "chatml";
    return text;
  }
  chat_format_name_ = "template";
  ChatFormat::Rendering rendering = chat_format_->Render(chat, where, generation_prompt);
  template_reads_time_ = template_reads_time_ || rendering.reads_time;
  chat_template_ = chat_format_->Describe(template_reads_time_);
  return std::move(rendering.text);
}

std::string RowEncoder::RenderChatMl(const ChatRow& chat, const std::string& where,
                                     bool generation_prompt) const {
  if (!HasChatMl()) {
    throw InputError(fmt::format(
        "{}: these messages need a chat template, but the model has none (and no {} and {} for "
        "ChatML); give --chat-template, or rows with \"text\" or \"input_ids\"",
        where, kTurnStart, kTurnEnd));
  }
  std::string text;
  const jinja::Value messages = WithJoinedParts(chat.messages, where);
  for (const jinja::Value& message : messages.items()) {
    const jinja::Value* content = message.dict().Find("content");
    if (content == nullptr || !content->is_string()) {
      throw InputError(where +
                       ": without a chat template, every \"content\" must be a string; give a "
                       "template with --chat-template");
    }
    text += fmt::format("{}{}\n{}{}\n", kTurnStart, message.dict().Find("role")->as_string(),
                        content->as_string(), kTurnEnd);
  }
  if (generation_prompt) text += fmt::format("{}assistant\n", kTurnStart);
  return text;
}

template <class Id>
std::vector<int32_t> RowEncoder::CheckedIds(const std::vector<Id>& ids,
                                            const std::string& where) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && int64_t{ids[i]} < vocab_size_) continue;
    throw InputError(fmt::format(
        "{}: token {} has id {}, expected an id in [0, {}), the range of the model's vocabulary{}",
        where, i, ids[i], vocab_size_,
        sizeof(Id) == sizeof(int32_t) ? "; the tokenizer.json belongs to another model" : ""));
  }
  return {ids.begin(), ids.end()};
}

}  // namespace oscar
