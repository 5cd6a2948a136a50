// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Added tokens: strings that are found in the text before any other step ("<|im_start|>"). Tokens
// without the flag "normalized" are searched for in the raw text. The others are normalized and
// searched for in the rest of the text, after it has been normalized too. The leftmost match wins,
// then the longest. A match that its single_word flag rejects still consumes its text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/files/regex.h"
#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/normalizer.h"
#include "capture/text/tokenizer/token_model.h"

namespace oscar {

struct AddedToken {
  int32_t id = -1;
  std::string content;
  std::string decoded;       // text that Decode() writes: the content, normalized if `normalized`
  bool special = false;      // Decode(skip_special_tokens) omits it
  bool normalized = false;   // matched in normalized text
  bool lstrip = false;       // also takes the white space before it
  bool rstrip = false;       // also takes the white space after it
  bool single_word = false;  // only if no word character touches it
};

// A part of the text: an added token, or text for the rest of the pipeline if id < 0.
struct Stretch {
  int32_t id;
  size_t begin, end;  // bytes
};

class AddedTokens {
 public:
  // `list` is the member "added_tokens" (an array, or null for none). `extra`, also an array or
  // null, has the tokens of other files (ExtraTokens() in tokenizer_files.h). If both have a token,
  // its flags in `extra` apply, unless that entry is "weak". A token that only `extra` has gets its
  // id in the vocabulary, or else the next free id, as by the library's add_tokens(). Throws
  // InputError naming `where` for a malformed entry, an id outside [0, 2^31), or an entry of `list`
  // that contradicts `model`.
  AddedTokens(const Json& list, const Json& extra, const TokenModel& model,
              const Chain<Normalizer>& normalizers, const std::string& where);

  // Splits raw text (`normalized` false) or normalized text into stretches, in order.
  std::vector<Stretch> Split(std::string_view text, bool normalized) const;

  const AddedToken* Find(int32_t id) const;                // null: not an added token
  const AddedToken* Find(std::string_view content) const;  // null: not an added token
  int32_t max_id() const { return max_id_; }

 private:
  void Add(const Json& entry, const TokenModel& model, const std::string& where);
  void AddExtra(const Json& entry, const TokenModel& model, const std::string& where);
  void Put(AddedToken token, const std::string& where);

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  StringMap<size_t> by_content_;
  TokenMatcher raw_, normalized_;
  Regex word_character_;
  int32_t max_id_ = -1;
};

}  // namespace oscar
