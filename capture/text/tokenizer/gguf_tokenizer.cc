// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/gguf_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/tokenizer/sentencepiece.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Type = SentencePieceVocabulary::Type;

// Pre-tokenizer patterns. llama.cpp gives each a name (convert_hf_to_gguf_update.py and
// src/llama-vocab.cpp, llm_tokenizer_bpe) that refers to a model; the patterns are those in that
// model's tokenizer.json.
#define OSCAR_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define OSCAR_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define OSCAR_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define OSCAR_ENDING R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define OSCAR_ENDING_O200K R"([\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr std::string_view kLlama3 =
    OSCAR_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)" OSCAR_ENDING;
constexpr std::string_view kQwen2 =
    OSCAR_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+)" OSCAR_ENDING;
constexpr std::string_view kQwen35 = OSCAR_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+)" OSCAR_ENDING;
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?)" OSCAR_UPPER "*" OSCAR_LOWER R"(+|[^\r\n\p{L}\p{N}]?)" OSCAR_UPPER
    "+" OSCAR_LOWER R"(*|\p{N}| ?[^\s\p{L}\p{N}]+)" OSCAR_ENDING_O200K;
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?)" OSCAR_UPPER "*" OSCAR_LOWER "+" OSCAR_CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?)" OSCAR_UPPER "+" OSCAR_LOWER "*" OSCAR_CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)" OSCAR_ENDING_O200K;
constexpr std::string_view kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+)" OSCAR_ENDING;
constexpr std::string_view kDeepseekLetters =
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-"
    "\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1"
    "\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD"
    "\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D"
    "\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-"
    "\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D"
    "\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4"
    "\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E"
    "\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F"
    "\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2"
    "\U000118A0-\U000118DF\U0001E900-\U0001E943]+";
#undef OSCAR_CONTRACTIONS
#undef OSCAR_UPPER
#undef OSCAR_LOWER
#undef OSCAR_ENDING
#undef OSCAR_ENDING_O200K

struct Kind {
  std::vector<std::string_view> names;     // values of tokenizer.ggml.pre
  std::vector<std::string_view> patterns;  // split patterns, in order
  bool whole_words = false;                // ignore_merges
  bool adds_bos = false;                   // used if tokenizer.ggml.add_bos_token is missing
  bool composes = false;                   // NFC
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {.names = {"gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "trillion", "gigachat",
                 "granite-docling"},
       .patterns = {kGpt2Pattern}},
      {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
                 "mellum2"},
       .patterns = {R"(\p{N})", kGpt2Pattern}},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2"},
       .patterns = {kLlama3},
       .whole_words = true,
       .adds_bos = true},
      {.names = {"glm4", "chatglm-bpe", "dbrx", "smaug-bpe"}, .patterns = {kLlama3}},
      {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "megrez"},
       .patterns = {kQwen2},
       .composes = true},
      {.names = {"stablelm2", "hunyuan", "solar-open"}, .patterns = {kQwen2}},
      {.names = {"qwen35"}, .patterns = {kQwen35}, .composes = true},
      {.names = {"tekken"}, .patterns = {kTekken}, .whole_words = true, .adds_bos = true},
      {.names = {"gpt-4o", "llama4", "kanana2", "minimax-m2"},
       .patterns = {kGpt4o},
       .whole_words = true},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       .patterns = {R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+", kDeepseekV3}},
      {.names = {"deepseek-llm"},
       .patterns = {"[\r\n]", kDeepseekLetters, R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)",
                    "[一-龥ࠀ-一가-\uD7FF]+", R"(\p{N})"}},
      {.names = {"deepseek-coder"},
       .patterns = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\uD7FF]+", R"(\p{N})"}},
      {.names = {"falcon"}, .patterns = {R"([\p{P}$+<=>^~|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}},
      {.names = {"default"},
       .patterns = {R"([\p{P}$+<=>^~|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return kinds;
}

const Kind& KindNamed(std::string_view name, const std::string& where) {
  std::vector<std::string_view> known;
  for (const Kind& kind : Kinds()) {
    if (std::ranges::find(kind.names, name) != kind.names.end()) return kind;
    known.insert(known.end(), kind.names.begin(), kind.names.end());
  }
  throw InputError(fmt::format(
      "{}: tokenizer.ggml.pre {} is not supported; supported: {}. Give rows with \"input_ids\" to "
      "calibrate without this tokenizer",
      where, Quoted(name), fmt::join(known, ", ")));
}

Json Step(const char* type, Json fields) {
  fields["type"] = type;
  return fields;
}

// Reads the list of tokens that every GGUF tokenizer has, each with a type and possibly a score.
SentencePieceVocabulary ReadPieces(const GgufFile& gguf, const std::string& where) {
  const auto tokens = gguf.Strings("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty()) throw InputError(where + ": tokenizer.ggml.tokens is missing");
  const auto types = gguf.Counts("tokenizer.ggml.token_type");
  const auto scores = gguf.Numbers("tokenizer.ggml.scores");
  if ((types && types->size() != tokens->size()) || (scores && scores->size() != tokens->size())) {
    throw InputError(fmt::format(
        "{}: has {} tokens, but {} types and {} scores; expected the same number of each", where,
        tokens->size(), types ? types->size() : 0, scores ? scores->size() : 0));
  }
  SentencePieceVocabulary vocabulary;
  for (size_t i = 0; i < tokens->size(); ++i) {
    auto& piece = vocabulary.pieces.emplace_back();
    piece.text = (*tokens)[i];
    if (FirstInvalidUtf8(piece.text))
      throw InputError(fmt::format("{}: tokenizer.ggml.tokens[{}] is not UTF-8", where, i));
    if (scores) piece.score = static_cast<float>((*scores)[i]);
    if (types && (*types)[i] >= 1 && (*types)[i] <= 6) piece.type = static_cast<Type>((*types)[i]);
  }
  return vocabulary;
}

// Returns the text of the token whose id is stored under `key`; "" if there is none.
std::string TokenAt(const GgufFile& gguf, const char* key) {
  const auto id = gguf.Count(key);
  const auto tokens = gguf.Strings("tokenizer.ggml.tokens");
  return id && tokens && *id < tokens->size() ? std::string((*tokens)[*id]) : std::string();
}

Json AddedTokenList(const SentencePieceVocabulary& vocabulary, bool control, bool user_defined) {
  Json list = Json::array();
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const auto& [text, score, type] = vocabulary.pieces[i];
    const bool special = type == Type::kControl || type == Type::kUnknown;
    if (!(special ? control : type == Type::kUserDefined && user_defined)) continue;
    list.push_back({{"id", i}, {"content", text}, {"special", special}, {"normalized", false}});
  }
  return list;
}

// Converts the keys to a tokenizer.json, which the table of components reads.
TokenizerPipeline MakeBpePipeline(const GgufFile& gguf, bool gemma4, const std::string& where) {
  const SentencePieceVocabulary vocabulary = ReadPieces(gguf, where);
  const std::string name(gguf.String("tokenizer.ggml.pre").value_or("default"));
  const Kind kind = gemma4 ? Kind{} : KindNamed(name, where);
  Json tokens = Json::object();
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i)
    tokens.emplace(vocabulary.pieces[i].text, i);  // keeps the first of equal tokens
  Json merges = Json::array();
  const auto listed = gguf.Strings("tokenizer.ggml.merges");
  if (!listed) throw InputError(where + ": tokenizer.ggml.merges is missing");
  for (const std::string_view merge : *listed) {
    const size_t space = merge.find(' ', 1);  // a token may be a space
    if (space == merge.npos || FirstInvalidUtf8(merge)) {
      throw InputError(
          fmt::format("{}: tokenizer.ggml.merges[{}]: expected \"left right\", found {}", where,
                      merges.size(), Quoted(merge)));
    }
    merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  Json model = {{"type", "BPE"},
                {"vocab", std::move(tokens)},
                {"merges", std::move(merges)},
                {"ignore_merges", kind.whole_words}};
  Json added = AddedTokenList(vocabulary, true, true);
  Json root = {{"version", "1.0"}};
  Json& steps = root["pre_tokenizer"];
  if (gemma4) {
    model["byte_fallback"] = model["fuse_unk"] = true;
    if (const std::string unknown = TokenAt(gguf, "tokenizer.ggml.unknown_token_id");
        !unknown.empty())
      model["unk_token"] = unknown;
    root["normalizer"] = Step("Replace", {{"pattern", {{"String", " "}}}, {"content", "\u2581"}});
    const Json space = Step("Replace", {{"pattern", {{"String", "\u2581"}}}, {"content", " "}});
    root["decoder"] =
        Step("Sequence",
             {{"decoders",
               {space, Step("ByteFallback", Json::object()), Step("Fuse", Json::object())}}});
  } else {
    Json list = Json::array();
    const auto split = [&](std::string_view pattern) {
      list.push_back(Step("Split", {{"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}}));
    };
    for (const std::string_view pattern : kind.patterns) split(pattern);
    list.push_back(Step("ByteLevel", {{"add_prefix_space", false}, {"use_regex", false}}));
    steps = Step("Sequence", {{"pretokenizers", list}});
    if (kind.composes) root["normalizer"] = Step("NFC", Json::object());
    root["decoder"] = Step("ByteLevel", Json::object());
  }
  root["model"] = std::move(model);
  root["added_tokens"] = std::move(added);

  Json around = Json::array();
  Json ids = Json::object();
  const auto put = [&](const char* key, const char* id_key, bool fallback) {
    const std::string token = TokenAt(gguf, id_key);
    if (token.empty() || !gguf.Bool(key).value_or(fallback)) return;
    around.push_back({{"SpecialToken", {{"id", token}}}});
    ids[token] = {{"ids", {*gguf.Count(id_key)}}};
  };
  put("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", kind.adds_bos);
  around.push_back({{"Sequence", {{"id", "A"}}}});
  put("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false);
  root["post_processor"] =
      Step("TemplateProcessing", {{"single", around}, {"special_tokens", ids}});
  return MakeTokenizerPipeline(root, nullptr, where);
}

TokenizerPipeline MakePiecePipeline(const GgufFile& gguf, const std::string& where) {
  SentencePieceVocabulary vocabulary = ReadPieces(gguf, where);
  vocabulary.byte_fallback = true;
  vocabulary.add_dummy_prefix = gguf.Bool("tokenizer.ggml.add_space_prefix").value_or(true);
  vocabulary.remove_extra_whitespaces =
      gguf.Bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  SentencePieceOptions options;
  options.extra = AddedTokenList(vocabulary, false, true);
  if (gguf.Bool("tokenizer.ggml.add_bos_token").value_or(true))
    options.bos = TokenAt(gguf, "tokenizer.ggml.bos_token_id");
  if (gguf.Bool("tokenizer.ggml.add_eos_token").value_or(false))
    options.eos = TokenAt(gguf, "tokenizer.ggml.eos_token_id");
  return MakeSentencePiecePipeline(std::move(vocabulary), options, where);
}

}  // namespace

TokenizerPipeline MakeGgufPipeline(const GgufFile& gguf) {
  const std::string where = gguf.file.path().string();
  const auto model = gguf.String("tokenizer.ggml.model");
  if (!model) {
    throw InputError(where +
                     ": tokenizer.ggml.model is missing, so the file has no tokenizer; give rows "
                     "with \"input_ids\"");
  }
  if (*model == "gpt2") return MakeBpePipeline(gguf, /*gemma4=*/false, where);
  if (*model == "gemma4") return MakeBpePipeline(gguf, /*gemma4=*/true, where);
  if (*model == "llama") return MakePiecePipeline(gguf, where);
  throw InputError(
      fmt::format("{}: tokenizer.ggml.model {} is not supported; supported: gpt2, llama, gemma4. "
                  "Give rows with "
                  "\"input_ids\" to calibrate without this tokenizer",
                  where, Quoted(*model)));
}

Json GgufTokenizerConfig(const GgufFile& gguf) {
  Json config = Json::object();
  for (const auto& [name, key] : {std::pair("bos_token", "tokenizer.ggml.bos_token_id"),
                                  std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
                                  std::pair("unk_token", "tokenizer.ggml.unknown_token_id"),
                                  std::pair("pad_token", "tokenizer.ggml.padding_token_id")}) {
    if (const std::string token = TokenAt(gguf, key); !token.empty()) config[name] = token;
  }
  const auto source = gguf.String("tokenizer.chat_template");
  if (!source) return config;
  config["chat_template"] = *source;
  const auto tools = gguf.String("tokenizer.chat_template.tool_use");
  if (!tools) return config;
  config["chat_template"] = {{{"name", "default"}, {"template", *source}},
                             {{"name", "tool_use"}, {"template", *tools}}};
  return config;
}

}  // namespace oscar
