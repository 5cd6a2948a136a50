// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/data_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "capture/files/digest.h"
#include "capture/files/quote.h"
#include "capture/text/data/builtin_corpus.h"
#include "capture/text/data/data_rows.h"
#include "capture/text/data/packing.h"
#include "capture/text/data/row_encoder.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

template <class Integer>
void AppendLittleEndian(Integer value, std::string& out) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
  }
}

// Smallest share of a domain, in tokens. A document must be much longer than the part of a KV cache
// that is not quantized, so a small budget is spent on long excerpts from few domains.
constexpr int64_t kSmallestShare = 2048;

bool IsMasked(const std::vector<Document>& documents) {
  return std::ranges::any_of(documents,
                             [](const Document& document) { return !document.counted.empty(); });
}

class DataLoader {
 public:
  DataLoader(const DataOptions& options, const LazyTokenizer& tokenizer, int64_t vocab_size)
      : options_(options), rows_(options.model_directory, options.chat, tokenizer, vocab_size) {}

  void AddBuiltinCorpus() {
    const bool evaluation = options_.builtin == BuiltinText::kEvaluation;
    set_.name = evaluation ? fmt::format("builtin evaluation corpus v{}", kBuiltinEvaluationVersion)
                           : fmt::format("builtin corpus v{}", kBuiltinCorpusVersion);
    std::vector<BuiltinDocument> corpus = evaluation ? BuiltinEvaluationCorpus() : BuiltinCorpus();
    set_.source_digests.push_back(BuiltinCorpusDigest(corpus));
    if (const auto& domains = options_.builtin_domains; !domains.empty()) {
      std::erase_if(corpus, [&](const BuiltinDocument& document) {
        return std::ranges::find(domains, document.domain) == domains.end();
      });
    }
    if (options_.mix.empty()) {
      TakeInTurn(corpus);
    } else {
      for (const BuiltinDocument& document : corpus) Take(Encode(document));
    }
  }

  void AddFile(const std::filesystem::path& file) {
    if (!set_.name.empty()) set_.name += ", ";
    set_.name += file.filename().string();
    source_ = set_.source_digests.size();
    const std::string whole_file = file.filename().string();  // the origin of plain text
    set_.source_digests.push_back(ReadDataRows(file, [&](const DataRow& row) {
      if (std::holds_alternative<std::monostate>(row.value)) {
        ++rows_null_;
        return;
      }
      std::vector<int32_t> ids = rows_.Encode(row);
      const bool too_long = static_cast<int64_t>(ids.size()) > options_.max_sequence;
      if (too_long && !options_.pack && row.origin == whole_file) {
        TakeInChunks(row, ids);
      } else {
        const auto* const given = std::get_if<IdsRow>(&row.value);
        if (given != nullptr) padding_ += given->padding;
        Take({row.origin, std::move(ids),
              given != nullptr ? given->counted : std::vector<uint8_t>(), whole_file});
      }
    }));
  }

  DataSet Finish() && {
    CheckChatWasUsed();
    if (!options_.mix.empty()) MixDocuments();
    if (options_.pack)
      PackDocuments(*options_.pack, options_.max_sequence, options_.token_budget, set_,
                    options_.pack_short);
    CountMixedOut();
    set_.counts.padding = padding_;
    set_.counts.rows_null = rows_null_;
    set_.counts.beginnings_left_out = rows_.beginnings_left_out();
    if (set_.documents.empty()) {
      throw InputError(
          fmt::format("{}: contains no tokens to use ({} documents, all empty or masked; {} rows "
                      "that are null)",
                      set_.name, set_.counts.documents_sent, rows_null_));
    }
    for (Document& document : set_.documents) {
      if (std::ranges::find(document.counted, 0) == document.counted.end())
        document.counted.clear();  // truncation removed all excluded queries
    }
    if (set_.counted_queries() == 0) {
      throw InputError(fmt::format(
          "{}: loss_mask or labels exclude all {} tokens, so there is nothing to fit to; "
          "give rows with tokens that are not excluded",
          set_.name, set_.counts.tokens_used));
    }
    CheckLost();
    set_.chat_format = rows_.chat_format();
    set_.chat_template = rows_.chat_template();
    set_.digest = DataDigest(set_.documents);
    return std::move(set_);
  }

 private:
  void CheckLost() {
    constexpr int64_t kOneIn = 1000;
    set_.lost = rows_.lost();
    const int64_t all = set_.counts.tokens_sent + set_.lost;
    if (set_.lost * kOneIn <= all) return;
    throw InputError(
        fmt::format("{}: the vocabulary has no token for {} of {} bytes or tokens ({:.2f} %), "
                    "which would be left out; at most one in {} may be left out. Give text that "
                    "the model's vocabulary covers, or rows with \"input_ids\"",
                    set_.name, set_.lost, all,
                    100 * static_cast<double>(set_.lost) / static_cast<double>(all), kOneIn));
  }

  void CheckChatWasUsed() const {
    const ChatOptions& chat = options_.chat;
    if (rows_.looked_for_template() || options_.chat_for_prompts ||
        (chat.template_file.empty() && chat.variables.empty()))
      return;
    throw UsageError(fmt::format(
        "a chat template and its variables only apply to rows with messages, but {} has none",
        set_.name));
  }

  // Keeps only the documents that the mix takes, in the order of the mix.
  void MixDocuments() {
    std::vector<MixDocument> lengths;
    for (size_t i = 0; i < set_.documents.size(); ++i) {
      const auto size = static_cast<int64_t>(set_.documents[i].ids.size());
      lengths.push_back(
          {sources_[i], options_.pack ? size : std::min(size, options_.max_sequence)});
    }
    const Mix mix = ChooseMix(lengths, options_.mix, options_.token_budget);
    set_.mix = mix.classes;
    std::vector<Document> documents = std::exchange(set_.documents, {});
    for (const Document& document : documents) {
      ++mixed_out_.documents_sent;
      mixed_out_.tokens_sent += static_cast<int64_t>(document.ids.size());
    }
    for (const size_t i : mix.order) {
      --mixed_out_.documents_sent;
      mixed_out_.tokens_sent -= static_cast<int64_t>(documents[i].ids.size());
      if (options_.pack) {
        set_.documents.push_back(std::move(documents[i]));
      } else {
        TakeNow(std::move(documents[i]));
      }
    }
  }

  void CountMixedOut() {
    set_.counts.documents_sent += mixed_out_.documents_sent;
    set_.counts.documents_dropped += mixed_out_.documents_sent;
    set_.counts.tokens_sent += mixed_out_.tokens_sent;
    set_.counts.tokens_dropped += mixed_out_.tokens_sent;
  }

  Document Encode(const BuiltinDocument& document) {
    const std::string origin = "builtin:" + std::string(document.name);
    return {.origin = origin,
            .ids = rows_.EncodeText(std::string(document.text), origin),
            .domain = std::string(document.domain)};
  }

  // Takes documents until the budget is full, always from the domain with the fewest tokens so far.
  // Each domain has an equal share of the budget. A document is truncated to what is left of its
  // domain's share, but not to less than a quarter of a share. A domain exceeds its share only when
  // the others have no more text. For packed text, the sequences are divided evenly among the
  // domains; if that leaves a remainder, the first domains supply one more sequence.
  void TakeInTurn(const std::vector<BuiltinDocument>& corpus) {
    struct Domain {
      std::string_view name;
      std::vector<const BuiltinDocument*> documents;
      size_t next = 0;
      int64_t tokens = 0;
    };
    std::vector<Domain> domains;
    for (const BuiltinDocument& document : corpus) {
      auto found = std::ranges::find(domains, document.domain, &Domain::name);
      if (found == domains.end()) found = domains.insert(found, Domain{document.domain, {}});
      found->documents.push_back(&document);
    }
    const auto count = std::max<int64_t>(1, std::ssize(domains));
    if (options_.pack) {
      const int64_t sequences =
          (options_.token_budget + options_.max_sequence - 1) / options_.max_sequence;
      for (int64_t i = 0; i < std::ssize(domains); ++i) {
        Domain& domain = domains[static_cast<size_t>(i)];
        const int64_t wanted = (sequences + count - 1 - i) / count * options_.max_sequence;
        for (; domain.tokens < wanted && domain.next < domain.documents.size(); ++domain.next) {
          Document document = Encode(*domain.documents[domain.next]);
          domain.tokens += std::ssize(document.ids) + 1;  // plus a separator
          Take(std::move(document));
        }
      }
      return;
    }
    const auto share = std::max((options_.token_budget + count - 1) / count, kSmallestShare);
    for (int64_t taken = 0; taken < options_.token_budget;) {
      Domain* next = nullptr;
      for (Domain& domain : domains) {
        if (domain.next < domain.documents.size() &&
            (next == nullptr || domain.tokens < next->tokens)) {
          next = &domain;
        }
      }
      if (next == nullptr) return;
      Document document = Encode(*next->documents[next->next++]);
      const int64_t rest = share - next->tokens;
      auto size =
          std::min({std::ssize(document.ids), share, rest > 0 ? std::max(rest, share / 4) : share});
      document.ids.resize(static_cast<size_t>(size));
      size = std::min(size, options_.max_sequence);
      next->tokens += size;
      taken += size;
      Take(std::move(document), /*fills=*/true);
    }
  }

  // Each chunk begins like a separate text, with the same special tokens.
  void TakeInChunks(const DataRow& row, const std::vector<int32_t>& ids) {
    const std::vector<int32_t> bare = rows_.tokenizer(row.where).Encode("", true);
    const auto special = std::ranges::mismatch(ids, bare).in1;
    const auto length = std::max<int64_t>(1, options_.max_sequence - (special - ids.begin()));
    int64_t number = 1;
    for (auto at = special; at != ids.end(); ++number) {
      const auto end = at + std::min<int64_t>(length, ids.end() - at);
      std::vector<int32_t> chunk(ids.begin(), special);
      chunk.insert(chunk.end(), at, end);
      Take({.origin = fmt::format("{}#{}", row.origin, number),
            .ids = std::move(chunk),
            .domain = row.origin},
           /*fills=*/true);
      at = end;
    }
  }

  // `fills`: truncates the document to the rest of the budget instead of dropping it.
  void Take(Document document, bool fills = false) {
    if (options_.pack || !options_.mix.empty()) {  // Finish() decides
      set_.documents.push_back(std::move(document));
      sources_.push_back(source_);
      return;
    }
    TakeNow(std::move(document), fills);
  }

  void TakeNow(Document document, bool fills = false) {
    DataCounts& counts = set_.counts;
    const auto sent = static_cast<int64_t>(document.ids.size());
    const int64_t rest = options_.token_budget - counts.tokens_used;
    ++counts.documents_sent;
    counts.tokens_sent += sent;
    int64_t used = std::min(sent, options_.max_sequence);
    if (set_.documents.empty() || fills) used = std::min(used, rest);
    if (used == 0 || used > rest) {
      ++counts.documents_dropped;
      counts.tokens_dropped += sent;
      return;
    }
    ++counts.documents_used;
    counts.documents_truncated += used < sent ? 1 : 0;
    counts.tokens_used += used;
    counts.tokens_truncated += sent - used;
    document.ids.resize(static_cast<size_t>(used));
    if (!document.counted.empty()) document.counted.resize(static_cast<size_t>(used));
    set_.documents.push_back(std::move(document));
  }

  const DataOptions& options_;
  RowEncoder rows_;
  size_t source_ = 0;            // index of the current file
  std::vector<size_t> sources_;  // source of each document that waits for Finish()
  DataCounts mixed_out_;         // counts of documents that the mix did not choose
  int64_t padding_ = 0, rows_null_ = 0;
  DataSet set_{.name = {},
               .digest = {},
               .source_digests = {},
               .chat_format = "none",
               .chat_template = nullptr,
               .separator = {},
               .documents = {},
               .counts = {},
               .lost = 0,
               .mix = {},
               .self_generated = nullptr};
};

}  // namespace

bool DataSet::masked() const { return IsMasked(documents); }

std::vector<std::vector<uint8_t>> DataSet::counted() const {
  std::vector<std::vector<uint8_t>> counted;
  if (!masked()) return counted;
  for (const Document& document : documents) counted.push_back(document.counted);
  return counted;
}

std::vector<int32_t> DataSet::domains() const {
  std::map<std::string_view, int32_t> numbers;
  std::vector<int32_t> domains;
  for (const Document& document : documents) {
    const auto next = static_cast<int32_t>(numbers.size());
    domains.push_back(numbers.try_emplace(document.domain, next).first->second);
  }
  if (numbers.size() < 2) domains.clear();
  return domains;
}

int64_t DataSet::counted_queries() const {
  int64_t queries = 0;
  for (const Document& document : documents) {
    queries += document.counted.empty()
                   ? std::ssize(document.ids)
                   : std::count(document.counted.begin(), document.counted.end(), 1);
  }
  return queries;
}

std::string DataDigest(const std::vector<Document>& documents) {
  Sha256 digest;
  const bool masked = IsMasked(documents);
  digest.Add(masked ? "oscar-data-2\n" : "oscar-data-1\n");
  for (const Document& document : documents) {
    std::string bytes;
    AppendLittleEndian(static_cast<int64_t>(document.ids.size()), bytes);
    for (const int32_t id : document.ids) AppendLittleEndian(id, bytes);
    if (masked) {
      for (size_t i = 0; i < document.ids.size(); ++i)
        bytes += document.counted.empty() || document.counted[i] != 0 ? '\1' : '\0';
    }
    digest.Add(bytes);
  }
  return digest.FinishHex();
}

DataSet LoadData(const DataOptions& options, const LazyTokenizer& tokenizer, int64_t vocab_size) {
  if (options.token_budget < 1 || options.max_sequence < 1) {
    throw UsageError(
        fmt::format("token budget {} and longest sequence {}: both must be at least 1 token",
                    options.token_budget, options.max_sequence));
  }
  if (options.pack && (options.pack->id < 0 || options.pack->id >= vocab_size)) {
    throw InputError(
        fmt::format("the separator {} has id {}, expected an id in [0, {}), the range of the "
                    "model's vocabulary",
                    Quoted(options.pack->token), options.pack->id, vocab_size));
  }
  CheckMix(options.mix, std::max<size_t>(options.files.size(), 1));
  DataLoader loader(options, tokenizer, vocab_size);
  if (options.files.empty()) loader.AddBuiltinCorpus();
  for (const std::filesystem::path& file : options.files) loader.AddFile(file);
  return std::move(loader).Finish();
}

}  // namespace oscar
