// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts text to token ids and back, as the Hugging Face library does for tokenizer.json. Trap:
// truncation and padding settings in the file are not applied. The data source cuts texts and
// counts what it cuts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/mapped_file.h"

namespace oscar {

struct TokenizerPipeline;  // tokenizer_json.h

// Immutable, so several threads may use it at once.
class Tokenizer {
 public:
  // Throws InputError naming the file and the component that is malformed or not supported; the
  // message lists the supported ones.
  static Tokenizer Load(const std::filesystem::path& tokenizer_json) {
    return Load(MappedFile::Open(tokenizer_json));
  }
  static Tokenizer Load(const MappedFile& tokenizer_json);
  static Tokenizer Of(TokenizerPipeline pipeline);

  // Throws InputError with the byte offset if `text` is not UTF-8. Omits bytes (of a byte-level
  // vocabulary) or characters without a token and adds their number to `lost`.
  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens,
                              int64_t* lost = nullptr) const;
  // Bytes that are not UTF-8 become U+FFFD; ids without a token are omitted.
  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  int64_t vocab_size() const;  // 1 + the largest id, including added tokens
  std::optional<int32_t> TokenId(std::string_view token) const;  // byte alphabet, or an added token
  bool IsAddedToken(std::string_view content) const;

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline)
      : pipeline_(std::move(pipeline)) {}
  std::shared_ptr<const TokenizerPipeline> pipeline_;
};

}  // namespace oscar
