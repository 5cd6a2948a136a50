// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The model's input: documents of token ids within a token budget, and counts of all tokens that
// were read but not used. Documents are whole, unless they are packed. A document that does not fit
// into the rest of the budget is dropped and counted; a later, shorter one may still be taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/text/data/chat_format.h"
#include "capture/text/data/data_mix.h"
#include "capture/text/tokenizer/tokenizer_files.h"

namespace oscar {

struct Document {
  std::string origin;        // "prompts.jsonl:12" or "builtin:prose-3"
  std::vector<int32_t> ids;  // [num_tokens]
  // [num_tokens] 0 if statistics and scores exclude the token's query (loss_mask, labels); empty if
  // they exclude none.
  std::vector<uint8_t> counted = {};
  // The kind of text: one of kBuiltinDomains, or the name of its file. Automatically chosen
  // quantization settings are evaluated on domains that were not used for fitting.
  std::string domain = {};
};

// "Sent" counts everything that was read. For documents, sent = used + dropped; truncated ones
// count as used. For tokens, sent = used + truncated + dropped. With packing, documents are counted
// before they are joined, separators count as tokens, and a document of which only the beginning
// was used counts as truncated.
struct DataCounts {
  int64_t documents_sent = 0, documents_used = 0, documents_truncated = 0, documents_dropped = 0;
  int64_t tokens_sent = 0, tokens_used = 0;
  int64_t tokens_truncated = 0;     // cut off from used documents
  int64_t tokens_dropped = 0;       // tokens of unused documents
  int64_t padding = 0;              // tokens removed by attention_mask; not counted as sent
  int64_t rows_null = 0;            // rows without a value, not counted as documents
  int64_t beginnings_left_out = 0;  // documents that already had the leading special tokens
  bool operator==(const DataCounts&) const = default;
};

// The token between packed documents; FindSeparator() (packing.h) chooses it.
struct Separator {
  std::string token;  // "<|endoftext|>"; empty if only the id is known
  int32_t id = -1;
};

// Text that is part of the program (builtin_corpus.h).
enum class BuiltinText { kCalibration, kEvaluation };

struct DataOptions {
  std::vector<std::filesystem::path> files;  // see data_rows.h; empty: uses `builtin`
  int64_t token_budget = 30000;              // tokens in all documents together
  int64_t max_sequence = 8192;               // tokens; longer documents are truncated to it
  // If set, documents are joined by this separator and cut into sequences of exactly max_sequence
  // tokens (packing.h).
  std::optional<Separator> pack = {};
  bool pack_short = false;  // allows shorter sequences (PackDocuments)
  BuiltinText builtin = BuiltinText::kCalibration;
  std::vector<std::string> builtin_domains = {};  // the domains of `builtin` to use; empty: all
  MixOptions mix = {};
  std::filesystem::path model_directory = {};  // directory with the chat template; empty: none
  ChatOptions chat = {};
  bool chat_for_prompts = false;  // whether chat options also apply to prompts (prompts.h)
};

struct DataSet {
  std::string name;                         // "builtin corpus v1", or the file names
  std::string digest;                       // SHA-256 of the token ids used and their boundaries
  std::vector<std::string> source_digests;  // SHA-256 of each file, or of the built-in corpus
  std::string chat_format;  // for messages: "template" or "chatml"; "none" without messages
  Json chat_template;       // ChatFormat::Describe() of "template", otherwise null
  std::optional<Separator> separator;  // only for packed data
  std::vector<Document> documents;
  DataCounts counts;
  int64_t lost = 0;               // bytes or characters without a token; see Tokenizer::Encode()
  std::vector<MixClass> mix;      // only for mixed data
  Json self_generated = nullptr;  // how the model wrote some of the documents, or null

  bool masked() const;  // whether any query is excluded
  // Document::counted of all documents; empty if no query is excluded.
  std::vector<std::vector<uint8_t>> counted() const;
  // A number for each document's domain, from 0 in order of first appearance; empty if there is
  // only one domain.
  std::vector<int32_t> domains() const;
  int64_t counted_queries() const;  // number of queries that are not excluded, over all documents
};

// Loads documents in order. Texts are encoded with the special tokens that the tokenizer adds.
// Messages use the chat template or, without one, ChatML if the tokenizer has <|im_start|> and
// <|im_end|>. `tokenizer` is not opened if every row has input_ids. `vocab_size` is the model's.
//
// A plain-text file longer than max_sequence becomes documents of that length, "notes.txt#1" and so
// on (as in llama.cpp's tools), until the budget is full. Other documents are truncated to
// max_sequence. The first document is truncated if it exceeds the budget by itself. An empty
// document counts as dropped. With `mix`, data_mix.h decides what is taken and in which order.
//
// A built-in corpus alternates between its domains until the budget is full. No document gets more
// than an equal share of the budget, and the rest of its text does not count as sent.
//
// Throws UsageError for a budget or length below 1. Throws InputError naming file and line for
// malformed rows, ids outside [0, vocab_size), and rows that need a missing tokenizer. Also throws
// InputError if there are no tokens (packed: no whole sequence), or if more than one token in a
// thousand was lost because it is not in the vocabulary.
DataSet LoadData(const DataOptions& options, const LazyTokenizer& tokenizer, int64_t vocab_size);

// Returns the SHA-256 of "oscar-data-1\n" and, for each document, its length (int64) and its ids
// (int32), all little-endian. If any query is excluded, "oscar-data-2\n" comes first, and each
// document is followed by one byte per token: 0 if its query is excluded, otherwise 1.
std::string DataDigest(const std::vector<Document>& documents);

}  // namespace oscar
