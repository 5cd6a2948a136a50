// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "capture/files/quote.h"
#include "capture/text/tokenizer/gguf_tokenizer.h"
#include "capture/text/tokenizer/sentencepiece.h"
#include "capture/text/tokenizer/tokenizer_json.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Appends a special token: a string or {"content", flags}.
void AppendSpecial(const Json& token, Json& tokens) {
  if (token.is_string() && !token.get_ref<const std::string&>().empty()) {
    tokens.push_back(
        {{"content", token}, {"special", true}, {"normalized", false}, {"weak", true}});
  } else if (token.is_object() && token.contains("content")) {
    Json entry = token;
    entry["special"] = entry["weak"] = true;
    tokens.push_back(std::move(entry));
  }
}

// Appends "bos_token", "image_token" and so on, and the lists of additional special tokens.
void AppendSpecials(const Json& config, Json& tokens) {
  for (const char* name : kSpecialTokenNames)
    if (const auto found = config.find(name); found != config.end()) AppendSpecial(*found, tokens);
  for (const auto& [key, value] : config.items())
    if (key.ends_with("_token") &&
        std::ranges::find(kSpecialTokenNames, key) == std::end(kSpecialTokenNames))
      AppendSpecial(value, tokens);
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (const auto more = config.find(key); more != config.end() && more->is_structured())
      for (const Json& token : *more) AppendSpecial(token, tokens);
  }
}

Json DecoderEntries(const Json& decoder, const std::string& where) {
  std::map<int64_t, Json> by_id;
  for (const auto& [key, entry] : decoder.items()) {
    int64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || !entry.is_object()) {
      throw InputError(
          fmt::format("{}: {}: expected an id and an object with \"content\"", where, Quoted(key)));
    }
    JsonString(entry, "content", where);
    by_id[id] = entry;
    by_id[id]["id"] = static_cast<uint64_t>(id);
  }
  Json tokens = Json::array();
  for (auto& [id, entry] : by_id) tokens.push_back(std::move(entry));
  return tokens;
}

TokenizerPipeline OpenSentencePiece(const fs::path& directory) {
  const fs::path file = directory / "tokenizer.model";
  const MappedFile mapped = MappedFile::Open(file);
  const Json config = ReadJsonObject(directory / "tokenizer_config.json");
  const std::string where = (directory / "tokenizer_config.json").string();
  SentencePieceOptions options;
  options.extra = ExtraTokens(directory);
  const Json token_class = config.value("tokenizer_class", Json());
  const bool is_llama =
      token_class.is_string() && token_class.get_ref<const std::string&>().starts_with("Llama");
  options.legacy = JsonBool(config, "legacy", !is_llama, where);
  const auto special = [&](const char* key, const char* flag, std::string fallback) {
    if (!JsonBool(config, flag, false, where)) return std::string();
    const Json token = config.value(key, Json());
    const Json content = token.is_object() ? token.value("content", Json()) : token;
    return content.is_string() ? content.get<std::string>() : fallback;
  };
  options.bos = special("bos_token", "add_bos_token", "<s>");
  options.eos = special("eos_token", "add_eos_token", "</s>");
  const std::span<const std::byte> bytes = mapped.bytes();
  return MakeSentencePiecePipeline(
      ParseSentencePieceModel({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                              file.string()),
      options, file.string());
}

}  // namespace

Json ReadJsonObject(const fs::path& file) {
  if (!fs::exists(file)) return Json::object();
  Json json = ReadConfigJson(file.string());
  if (!json.is_object()) throw InputError(file.string() + ": expected an object");
  return json;
}

Json ReadTokenizerConfig(const fs::path& model) {
  if (fs::is_regular_file(model)) return GgufTokenizerConfig(GgufFile::Open(model));
  return ReadJsonObject(model / "tokenizer_config.json");
}

Json ExtraTokens(const fs::path& directory) {
  const fs::path file = directory / "tokenizer_config.json";
  Json config = ReadJsonObject(file);
  Json tokens = Json::array();
  if (const auto decoder = config.find("added_tokens_decoder");
      decoder != config.end() && decoder->is_object()) {
    tokens = DecoderEntries(*decoder, file.string() + ": added_tokens_decoder");
    AppendSpecials(config, tokens);
    return tokens;
  }
  config.update(ReadJsonObject(directory / "special_tokens_map.json"));
  Json specials = Json::array();
  AppendSpecials(config, specials);
  const fs::path old_file = directory / "added_tokens.json";
  Json decoder = Json::object();
  const Json old_tokens = ReadJsonObject(old_file);  // {content: id}
  for (auto token = old_tokens.begin(); token != old_tokens.end(); ++token) {
    const bool special = std::any_of(specials.begin(), specials.end(), [&](const Json& entry) {
      return entry.at("content") == token.key();
    });
    decoder[token->dump()] = {{"content", token.key()}, {"special", special}, {"weak", true}};
  }
  tokens = DecoderEntries(decoder, old_file.string());
  for (Json& token : specials) tokens.push_back(std::move(token));
  return tokens;
}

std::optional<Tokenizer> OpenTokenizer(const fs::path& model) {
  if (fs::is_regular_file(model)) {
    const GgufFile gguf = GgufFile::Open(model);
    if (gguf.entries.contains("tokenizer.ggml.model")) return Tokenizer::Of(MakeGgufPipeline(gguf));
    return std::nullopt;
  }
  if (const fs::path file = model / "tokenizer.json"; fs::exists(file)) {
    const Json root = ReadJsonFile(file.string());
    return Tokenizer::Of(MakeTokenizerPipeline(root, ExtraTokens(model), file.string()));
  }
  if (fs::exists(model / "tokenizer.model")) return Tokenizer::Of(OpenSentencePiece(model));
  return std::nullopt;
}

}  // namespace oscar
