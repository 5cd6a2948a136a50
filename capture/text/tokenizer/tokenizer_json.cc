// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/pattern.h"  // MaxGrownBytes
#include "linalg/base/error.h"

namespace oscar {
namespace {

// truncation and padding are accepted but not applied: see tokenizer.h.
constexpr std::string_view kMembers[] = {"version",        "truncation", "padding",
                                         "added_tokens",   "normalizer", "pre_tokenizer",
                                         "post_processor", "decoder",    "model"};

const Json& OptionalMember(const Json& root, const char* key) {
  static const Json null;
  const auto found = root.find(key);
  return found == root.end() ? null : *found;
}

// Refuses tokenizers in which a step might not recognize the piece at the start of the text. The
// library uses a piece's place in the raw text, we use its place in the current text. These agree
// if nothing is removed from or added to the front of the text. They also agree for a single
// Metaspace after Prepend, because it does not change a text that begins with its character.
void CheckBegin(const Chain<Normalizer>& normalizers, const Chain<PreTokenizer>& steps,
                const std::string& where) {
  const auto asks = [](const auto& step) { return step->asks_for_begin(); };
  const auto moves = [](const auto& step) { return step->moves_begin(); };
  if (std::ranges::none_of(steps, asks) || std::ranges::none_of(normalizers, moves)) return;
  const auto prepends = [](const auto& step) {
    return !step->Apply("x", MaxGrownBytes(1)).starts_with("x");
  };
  if (steps.size() == 1 && std::ranges::count_if(normalizers, moves) == 1 &&
      std::ranges::any_of(normalizers, prepends)) {
    return;
  }
  throw InputError(
      where +
      ": prepend_scheme \"first\" after a normalizer that changes the beginning of the text is not "
      "supported. Give rows with \"input_ids\" to calibrate without this tokenizer");
}

}  // namespace

void CheckInsertedIds(const TokenizerPipeline& pipeline, const std::string& where) {
  for (const auto& step : pipeline.post_processors) {
    for (const int32_t id : step->InsertedIds()) {
      if (pipeline.model->Token(id) != nullptr || pipeline.added_tokens.Find(id) != nullptr)
        continue;
      throw InputError(
          fmt::format("{}: inserts id {}, which does not belong to any token", where, id));
    }
  }
}

TokenizerPipeline MakeTokenizerPipeline(const Json& root, const Json& extra,
                                        const std::string& file) {
  if (!root.is_object()) throw InputError(file + ": expected an object");
  const std::string version = JsonString(root, "version", file);
  if (version != "1.0") {
    throw InputError(
        fmt::format("{}: version {} is not supported; supported: 1.0", file, Quoted(version)));
  }
  CheckFields(root, kMembers, file);
  const auto where = [&](const char* member) { return file + ": " + member; };

  Chain<Normalizer> normalizers =
      MakeNormalizers(OptionalMember(root, "normalizer"), where("normalizer"));
  Chain<PreTokenizer> pre_tokenizers =
      MakePreTokenizers(OptionalMember(root, "pre_tokenizer"), where("pre_tokenizer"));
  CheckBegin(normalizers, pre_tokenizers, where("pre_tokenizer"));
  Chain<PostProcessor> post_processors =
      MakePostProcessors(OptionalMember(root, "post_processor"), where("post_processor"));
  Chain<Decoder> decoders = MakeDecoders(OptionalMember(root, "decoder"), where("decoder"));
  const bool byte_level = !pre_tokenizers.empty() && pre_tokenizers.back()->is_byte_level();
  std::unique_ptr<const TokenModel> model = TokenModel::Make(
      JsonMember(root, "model", file),
      byte_level ? TokenModel::Symbols::kBytes : TokenModel::Symbols::kCharacters, where("model"));
  AddedTokens added_tokens(OptionalMember(root, "added_tokens"), extra, *model, normalizers,
                           where("added_tokens"));
  TokenizerPipeline pipeline{std::move(normalizers),     std::move(pre_tokenizers),
                             std::move(model),           std::move(added_tokens),
                             std::move(post_processors), std::move(decoders)};
  CheckInsertedIds(pipeline, where("post_processor"));
  return pipeline;
}

}  // namespace oscar
