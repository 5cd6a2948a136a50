// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to token ids and back, as the Hugging Face library does it for BPE files (tokenizer.json).
// Trap: truncation and padding that a file carries are not applied; what is cut is decided, and
// counted, by the data source.
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

// Immutable; may be used from several threads at once.
class Tokenizer {
 public:
  // Throws InputError naming the file and the component for whatever is malformed or not supported,
  // with the list of what is.
  static Tokenizer Load(const std::filesystem::path& tokenizer_json) {
    return Load(MappedFile::Open(tokenizer_json));
  }
  static Tokenizer Load(const MappedFile& tokenizer_json);
  static Tokenizer Of(TokenizerPipeline pipeline);

  // Throws InputError with the byte offset if `text` is not UTF-8. Adds to `lost` the bytes (of a
  // byte-level vocabulary) or characters that no token stands for; they are left out.
  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens,
                              int64_t* lost = nullptr) const;
  // Bytes that are not UTF-8 become U+FFFD; ids without a token are left out.
  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  int64_t vocab_size() const;  // 1 + the largest id, added tokens included
  std::optional<int32_t> TokenId(std::string_view token) const;  // byte alphabet, or added token
  bool IsAddedToken(std::string_view content) const;

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline)
      : pipeline_(std::move(pipeline)) {}
  std::shared_ptr<const TokenizerPipeline> pipeline_;
};

}  // namespace oscar
