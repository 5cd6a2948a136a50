// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/files/utf8.h"
#include "capture/text/tokenizer/pattern.h"  // MaxGrownBytes
#include "capture/text/tokenizer/tokenizer_json.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Encodes normalized text between added tokens. `begins_text`: nothing precedes it.
void EncodePlain(const TokenizerPipeline& pipeline, std::string text, bool begins_text,
                 TokenModel::Cache& cache, std::vector<int32_t>& ids) {
  const PieceList list = PreTokenize(pipeline.pre_tokenizers, std::move(text), begins_text);
  const std::string_view all = list.text;
  for (const PieceList::Range& piece : list.pieces) {
    pipeline.model->Encode(all.substr(piece.begin, piece.end - piece.begin), cache, ids);
  }
}

}  // namespace

Tokenizer Tokenizer::Load(const MappedFile& tokenizer_json) {
  const std::string file = tokenizer_json.path().string();
  const std::span<const std::byte> bytes = tokenizer_json.bytes();
  const Json root =
      ParseStrictJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
  return Of(MakeTokenizerPipeline(root, nullptr, file));
}

Tokenizer Tokenizer::Of(TokenizerPipeline pipeline) {
  return Tokenizer(std::make_shared<const TokenizerPipeline>(std::move(pipeline)));
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, bool add_special_tokens,
                                       int64_t* lost) const {
  if (const auto invalid = FirstInvalidUtf8(text)) {
    throw InputError(fmt::format(
        "the text has invalid UTF-8 at byte {} (found {:#04x}); convert it to UTF-8 first",
        *invalid, static_cast<uint8_t>(text[*invalid])));
  }
  std::vector<int32_t> ids;
  TokenModel::Cache cache;
  for (const Stretch& raw : pipeline_->added_tokens.Split(text, /*normalized=*/false)) {
    if (raw.id >= 0) {
      ids.push_back(raw.id);
      continue;
    }
    const std::string plain =
        Normalize(pipeline_->normalizers, std::string(text.substr(raw.begin, raw.end - raw.begin)));
    for (const Stretch& part : pipeline_->added_tokens.Split(plain, /*normalized=*/true)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        EncodePlain(*pipeline_, plain.substr(part.begin, part.end - part.begin),
                    raw.begin == 0 && part.begin == 0, cache, ids);
      }
    }
  }
  if (lost != nullptr) *lost += cache.lost;
  if (add_special_tokens) {
    const size_t max_ids = MaxGrownBytes(ids.size());
    for (const auto& step : pipeline_->post_processors) ids = step->Apply(std::move(ids), max_ids);
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (const AddedToken* added = pipeline_->added_tokens.Find(id)) {
      // Like the library, looks up the text to be written among the special tokens. So if
      // normalization changes the content of a special token, that token is not omitted.
      const AddedToken* written = pipeline_->added_tokens.Find(added->decoded);
      const bool is_special = written != nullptr && written->special;
      if (!(skip_special_tokens && is_special)) tokens.push_back(added->decoded);
    } else if (const std::string* token = pipeline_->model->Token(id)) {
      tokens.push_back(*token);
    }
  }
  return DecodeTokens(pipeline_->decoders, std::move(tokens));
}

int64_t Tokenizer::vocab_size() const {
  return 1 + int64_t{std::max(pipeline_->model->max_id(), pipeline_->added_tokens.max_id())};
}

std::optional<int32_t> Tokenizer::TokenId(std::string_view token) const {
  if (const AddedToken* added = pipeline_->added_tokens.Find(token)) return added->id;
  return pipeline_->model->TokenId(token);
}

bool Tokenizer::IsAddedToken(std::string_view content) const {
  return pipeline_->added_tokens.Find(content) != nullptr;
}

}  // namespace oscar
