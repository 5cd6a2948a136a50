// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/tokenizer/bpe.h"
#include "capture/text/tokenizer/sentencepiece_normalizer.h"
#include "capture/text/tokenizer/unigram.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Type = SentencePieceVocabulary::Type;

// Iterates over the fields of one message, in order. Field numbers are below 2^29.
class Message {
 public:
  Message(std::string_view bytes, size_t offset, const std::string& where)
      : rest_(bytes), offset_(offset), where_(where) {}

  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;           // varint, or the bits of a fixed-size value
    std::string_view bytes = {};  // for a string or a message
    size_t offset = 0;            // offset of `bytes` in the file
    int wire_type = 0;
  };
  bool Next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = Varint();
    field = {.number = tag >> 3, .wire_type = static_cast<int>(tag & 7)};
    if (field.number == 0) Fail("a field without a number");
    if (field.wire_type == kVarint) {
      field.value = Varint();
    } else if (field.wire_type == kFixed32 || field.wire_type == kFixed64) {
      const std::string_view raw = Take(field.wire_type == kFixed32 ? 4 : 8);
      for (size_t i = raw.size(); i-- > 0;)
        field.value = field.value << 8 | static_cast<uint8_t>(raw[i]);
    } else if (field.wire_type == kBytes) {
      const uint64_t size = Varint();
      field.offset = offset_;
      field.bytes = Take(size);
    } else {
      Fail(fmt::format("wire type {}", field.wire_type));
    }
    return true;
  }
  // These throw InputError if the field has another wire type.
  uint64_t Number(const Field& field) const { return Expect(field, kVarint), field.value; }
  std::string_view Bytes(const Field& field) const { return Expect(field, kBytes), field.bytes; }
  Message Inner(const Field& field) const { return {Bytes(field), field.offset, where_}; }
  float Float(const Field& field) const {
    Expect(field, kFixed32);
    return std::bit_cast<float>(static_cast<uint32_t>(field.value));
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw InputError(
        fmt::format("{}: byte {}: {}, so this is not a SentencePiece model. Give rows with "
                    "\"input_ids\" to calibrate without this tokenizer",
                    where_, offset_, what));
  }

 private:
  enum WireType : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void Expect(const Field& field, WireType type) const {
    if (field.wire_type != type) Fail(fmt::format("field {} has the wrong type", field.number));
  }
  std::string_view Take(uint64_t size) {
    if (size > rest_.size())
      Fail(fmt::format("a field of {} bytes, but only {} bytes are left", size, rest_.size()));
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    offset_ += size;
    return taken;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Take(1)[0]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    Fail("a number with more than 64 bits");
  }

  std::string_view rest_;
  size_t offset_;  // offset of rest_ in the file
  const std::string& where_;
};

SentencePieceVocabulary::Piece ParsePiece(Message message) {
  SentencePieceVocabulary::Piece piece;
  for (Message::Field field; message.Next(field);) {
    if (field.number == 1) piece.text = message.Bytes(field);
    if (field.number == 2) piece.score = message.Float(field);
    if (field.number != 3) continue;
    const uint64_t type = message.Number(field);
    if (type < 1 || type > 6) message.Fail(fmt::format("a piece of type {}", type));
    piece.type = static_cast<Type>(type);
  }
  if (FirstInvalidUtf8(piece.text)) message.Fail("a piece that is not UTF-8");
  if (!(std::abs(piece.score) < 1e30F)) message.Fail("a piece without a finite score");
  return piece;
}

void ParseTrainer(Message message, SentencePieceVocabulary& vocabulary) {
  for (Message::Field field; message.Next(field);) {
    if (field.number == 24) vocabulary.whitespace_as_suffix = message.Number(field) != 0;
    if (field.number == 35) vocabulary.byte_fallback = message.Number(field) != 0;
    if (field.number != 3) continue;
    const uint64_t type = message.Number(field);
    vocabulary.unigram = type == 1;
    if (type != 1 && type != 2)
      message.Fail(
          fmt::format("model_type is {}, but only Unigram (1) and BPE (2) are supported", type));
  }
}

void ParseNormalizer(Message message, SentencePieceVocabulary& vocabulary) {
  for (Message::Field field; message.Next(field);) {
    if (field.number == 2) vocabulary.charsmap = message.Bytes(field);
    if (field.number == 3) vocabulary.add_dummy_prefix = message.Number(field) != 0;
    if (field.number == 4) vocabulary.remove_extra_whitespaces = message.Number(field) != 0;
    if (field.number == 5) vocabulary.escape_whitespaces = message.Number(field) != 0;
  }
}

// Adds the dummy prefix before a text, but not after an added token.
class DummyPrefix : public PreTokenizer {
 public:
  void Apply(PieceList& list) const override {
    constexpr std::string_view kSpace = "\u2581";
    if (!list.begins_text) return;
    list.text.insert(0, kSpace);
    list.pieces = {{0, list.text.size()}};
  }
};

Json Step(const char* type, Json fields) {
  fields["type"] = type;
  return fields;
}

// Returns the steps of SentencePieceProcessor::Decode().
Json DecoderOf(const SentencePieceVocabulary& vocabulary) {
  Json steps = {Step("Replace", {{"pattern", {{"String", "\u2581"}}}, {"content", " "}}),
                Step("ByteFallback", Json::object()), Step("Fuse", Json::object())};
  const bool suffix = vocabulary.whitespace_as_suffix;
  if (vocabulary.add_dummy_prefix)
    steps.push_back(
        Step("Strip", {{"content", " "}, {"start", suffix ? 0 : 1}, {"stop", suffix ? 1 : 0}}));
  return Step("Sequence", {{"decoders", steps}});
}

// As in transformers' PreTrainedTokenizer, added_tokens_decoder gives reserved pieces names.
void RenamePieces(const Json& extra, SentencePieceVocabulary& vocabulary) {
  for (const Json& entry : extra) {
    const auto id = entry.find("id");
    if (id == entry.end() || !id->is_number_unsigned()) continue;
    if (const auto i = id->get<uint64_t>(); i < vocabulary.pieces.size())
      vocabulary.pieces[i].text = entry.at("content").get<std::string>();
  }
}

}  // namespace

SentencePieceVocabulary ParseSentencePieceModel(std::string_view bytes, const std::string& where) {
  SentencePieceVocabulary vocabulary;
  vocabulary.unigram = true;  // the default of model_type
  Message message(bytes, 0, where);
  for (Message::Field field; message.Next(field);) {
    if (field.number == 1) vocabulary.pieces.push_back(ParsePiece(message.Inner(field)));
    if (field.number == 2) ParseTrainer(message.Inner(field), vocabulary);
    if (field.number == 3) ParseNormalizer(message.Inner(field), vocabulary);
  }
  if (vocabulary.pieces.empty()) message.Fail("no pieces");
  return vocabulary;
}

TokenizerPipeline MakeSentencePiecePipeline(SentencePieceVocabulary vocabulary,
                                            const SentencePieceOptions& options,
                                            const std::string& where) {
  RenamePieces(options.extra, vocabulary);
  Chain<Normalizer> normalizers;
  normalizers.push_back(MakeSentencePieceNormalizer(vocabulary, options.legacy, where));
  Chain<PreTokenizer> pre_tokenizers;
  if (vocabulary.add_dummy_prefix && !options.legacy)
    pre_tokenizers.push_back(std::make_unique<DummyPrefix>());
  std::unique_ptr<const TokenModel> model;
  if (vocabulary.unigram) {
    model = std::make_unique<UnigramModel>(vocabulary, where);
  } else {
    model = std::make_unique<BpeModel>(vocabulary, where);
  }
  Json added = Json::array();
  std::set<std::string_view> named;
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const auto& piece = vocabulary.pieces[i];
    if ((piece.type != Type::kControl && piece.type != Type::kUnknown) ||
        !named.insert(piece.text).second)
      continue;
    added.push_back({{"id", i}, {"content", piece.text}, {"special", true}});
  }
  Json extra = options.extra;
  for (Json& entry : extra) entry["normalized"] = false;  // so each chunk gets the dummy prefix
  AddedTokens added_tokens(added, extra, *model, normalizers, where);
  Json around = Json::array();
  Json ids = Json::object();
  const auto put = [&](const std::string& token) {
    const AddedToken* found = added_tokens.Find(token);
    if (found == nullptr) return;
    around.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    ids[token] = {{"ids", {static_cast<uint32_t>(found->id)}}};
  };
  if (!options.bos.empty()) put(options.bos);
  around.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (!options.eos.empty()) put(options.eos);
  Chain<PostProcessor> post_processors = MakePostProcessors(
      Step("TemplateProcessing", {{"single", around}, {"special_tokens", ids}}), where);
  Chain<Decoder> decoders = MakeDecoders(DecoderOf(vocabulary), where);
  return {std::move(normalizers),  std::move(pre_tokenizers),  std::move(model),
          std::move(added_tokens), std::move(post_processors), std::move(decoders)};
}

}  // namespace oscar
