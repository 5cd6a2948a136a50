// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/data_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "capture/files/digest.h"
#include "capture/files/quote.h"
#include "capture/text/builtin_corpus.h"
#include "capture/text/data_rows.h"
#include "capture/text/packing.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr std::string_view kTurnStart = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>";

template <class Integer>
void AppendLittleEndian(Integer value, std::string& out) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
  }
}

const Tokenizer& NeedTokenizer(const Tokenizer* tokenizer, const std::string& where) {
  if (tokenizer != nullptr) return *tokenizer;
  throw InputError(where +
                   ": this is text, and the model directory has no tokenizer.json; add it, or give "
                   "rows with \"input_ids\"");
}

class DataLoader {
 public:
  DataLoader(const DataOptions& options, const Tokenizer* tokenizer, int64_t vocab_size)
      : options_(options), tokenizer_(tokenizer), vocab_size_(vocab_size) {}

  void AddBuiltinCorpus() {
    const bool evaluation = options_.builtin == BuiltinText::kEvaluation;
    set_.name = evaluation ? fmt::format("builtin evaluation corpus v{}", kBuiltinEvaluationVersion)
                           : fmt::format("builtin corpus v{}", kBuiltinCorpusVersion);
    const std::vector<BuiltinDocument> corpus =
        evaluation ? BuiltinEvaluationCorpus() : BuiltinCorpus();
    set_.source_digests.push_back(BuiltinCorpusDigest(corpus));
    for (const BuiltinDocument& document : corpus) {
      const std::string origin = "builtin:" + document.name;
      Take(origin,
           CheckedIds(NeedTokenizer(tokenizer_, origin).Encode(document.text, true), origin));
    }
  }

  void AddFile(const std::filesystem::path& file) {
    if (!set_.name.empty()) set_.name += ", ";
    set_.name += file.filename().string();
    set_.source_digests.push_back(ReadDataRows(file, [&](const DataRow& row) { AddRow(row); }));
  }

  DataSet Finish() && {
    if (options_.pack)
      PackDocuments(*options_.pack, options_.max_sequence, options_.token_budget, set_);
    if (set_.documents.empty()) {
      throw InputError(fmt::format("{}: no tokens to work with ({} documents, all empty)",
                                   set_.name, set_.counts.documents_sent));
    }
    set_.digest = DataDigest(set_.documents);
    return std::move(set_);
  }

 private:
  void AddRow(const DataRow& row) {
    if (const auto* text = std::get_if<std::string>(&row.value)) {
      const Tokenizer& tokenizer = NeedTokenizer(tokenizer_, row.where);
      // An empty document stays empty, even where the tokenizer would add a BOS.
      Take(row.origin, text->empty() ? std::vector<int32_t>{}
                                     : CheckedIds(tokenizer.Encode(*text, true), row.where));
    } else if (const auto* messages = std::get_if<std::vector<ChatMessage>>(&row.value)) {
      const std::string chat = RenderChatMl(*messages, row.where);
      Take(row.origin, CheckedIds(tokenizer_->Encode(chat, false), row.where));
    } else {
      Take(row.origin, CheckedIds(std::get<std::vector<int64_t>>(row.value), row.where));
    }
  }

  std::string RenderChatMl(const std::vector<ChatMessage>& messages, const std::string& where) {
    const Tokenizer& tokenizer = NeedTokenizer(tokenizer_, where);
    if (!tokenizer.IsAddedToken(kTurnStart) || !tokenizer.IsAddedToken(kTurnEnd)) {
      throw InputError(fmt::format(
          "{}: \"messages\" can only be rendered as ChatML, and this tokenizer has no {} and {}: "
          "the "
          "chat template of this model is not supported; give \"text\" or \"input_ids\" instead",
          where, kTurnStart, kTurnEnd));
    }
    set_.chat_format = "chatml";
    std::string chat;
    for (const ChatMessage& message : messages) {
      chat += fmt::format("{}{}\n{}{}\n", kTurnStart, message.role, message.content, kTurnEnd);
    }
    return chat;
  }

  template <class Id>
  std::vector<int32_t> CheckedIds(const std::vector<Id>& ids, const std::string& where) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && int64_t{ids[i]} < vocab_size_) continue;
      throw InputError(fmt::format(
          "{}: token {} has id {}, expected an id in [0, {}), the vocabulary of the model{}", where,
          i, ids[i], vocab_size_,
          sizeof(Id) == sizeof(int32_t) ? "; the tokenizer.json belongs to another model" : ""));
    }
    return {ids.begin(), ids.end()};
  }

  void Take(std::string origin, std::vector<int32_t> ids) {
    if (options_.pack) {  // everything, for PackDocuments()
      set_.documents.push_back({std::move(origin), std::move(ids)});
      return;
    }
    DataCounts& counts = set_.counts;
    const auto sent = static_cast<int64_t>(ids.size());
    const int64_t rest = options_.token_budget - counts.tokens_used;
    ++counts.documents_sent;
    counts.tokens_sent += sent;
    int64_t used = std::min(sent, options_.max_sequence);
    if (set_.documents.empty()) used = std::min(used, options_.token_budget);
    if (used == 0 || used > rest) {
      ++counts.documents_dropped;
      counts.tokens_dropped += sent;
      return;
    }
    ++counts.documents_used;
    counts.documents_truncated += used < sent ? 1 : 0;
    counts.tokens_used += used;
    counts.tokens_truncated += sent - used;
    ids.resize(static_cast<size_t>(used));
    set_.documents.push_back({std::move(origin), std::move(ids)});
  }

  const DataOptions& options_;
  const Tokenizer* tokenizer_;
  int64_t vocab_size_;
  DataSet set_{.name = {},
               .digest = {},
               .source_digests = {},
               .chat_format = "none",
               .separator = {},
               .documents = {},
               .counts = {}};
};

}  // namespace

std::string DataDigest(const std::vector<Document>& documents) {
  Sha256 digest;
  digest.Add("oscar-data-1\n");
  for (const Document& document : documents) {
    std::string bytes;
    AppendLittleEndian(static_cast<int64_t>(document.ids.size()), bytes);
    for (const int32_t id : document.ids) AppendLittleEndian(id, bytes);
    digest.Add(bytes);
  }
  return digest.FinishHex();
}

DataSet LoadData(const DataOptions& options, const Tokenizer* tokenizer, int64_t vocab_size) {
  if (options.token_budget < 1 || options.max_sequence < 1) {
    throw UsageError(
        fmt::format("token budget {} and longest sequence {}: both must be at least 1 token",
                    options.token_budget, options.max_sequence));
  }
  if (options.pack && (options.pack->id < 0 || options.pack->id >= vocab_size)) {
    throw InputError(fmt::format(
        "the separator {} has id {}, expected an id in [0, {}), the vocabulary of the model",
        Quoted(options.pack->token), options.pack->id, vocab_size));
  }
  DataLoader loader(options, tokenizer, vocab_size);
  if (options.files.empty()) loader.AddBuiltinCorpus();
  for (const std::filesystem::path& file : options.files) loader.AddFile(file);
  return std::move(loader).Finish();
}

}  // namespace oscar
