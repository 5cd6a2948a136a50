// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the files of a model's tokenizer: tokenizer.json, or else SentencePiece's tokenizer.model,
// or the keys of a GGUF. Like transformers, adds tokens and settings from tokenizer_config.json,
// special_tokens_map.json and added_tokens.json.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/tokenizer.h"

namespace oscar {

// PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES of transformers, in the order of ids.
inline constexpr const char* kSpecialTokenNames[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// `model` is a model directory or a GGUF file. Returns nothing if it has no tokenizer. Throws
// InputError like Tokenizer::Load().
std::optional<Tokenizer> OpenTokenizer(const std::filesystem::path& model);

// Returns tokenizer_config.json, or the equivalent keys of a GGUF; empty if there is neither.
Json ReadTokenizerConfig(const std::filesystem::path& model);
// Returns the object in a JSON file; empty if there is no such file.
Json ReadJsonObject(const std::filesystem::path& file);

// Returns the tokens in tokenizer_config.json, special_tokens_map.json and added_tokens.json, as
// AddedTokens expects them: an array of {"content", flags} in the order in which transformers adds
// them. An entry has "id" if a file gives one, and "weak" if the flags of a known token have
// priority.
Json ExtraTokens(const std::filesystem::path& model_directory);

// A tokenizer that is opened on first use, because rows of token ids do not need it. Copies share
// it. Trap: it is not thread-safe.
class LazyTokenizer {
 public:
  LazyTokenizer(const Tokenizer* opened = nullptr) : opened_(opened) {}  // NOLINT: stands for one
  explicit LazyTokenizer(std::function<std::optional<Tokenizer>()> open)
      : state_(std::make_shared<State>(State{std::move(open), std::nullopt})) {}

  const Tokenizer* get() const {  // null if there is none
    if (state_ == nullptr) return opened_;
    if (state_->open) state_->tokenizer = state_->open();
    state_->open = nullptr;
    return state_->tokenizer ? &*state_->tokenizer : nullptr;
  }
  explicit operator bool() const { return get() != nullptr; }
  const Tokenizer& operator*() const { return *get(); }

 private:
  struct State {
    std::function<std::optional<Tokenizer>()> open;  // null after opening
    std::optional<Tokenizer> tokenizer;
  };
  const Tokenizer* opened_ = nullptr;
  std::shared_ptr<State> state_;
};

}  // namespace oscar
