// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An OpenAI-compatible server (vLLM, SGLang, llama.cpp), asked for completions of token ids and
// their log probabilities. Trap: a server that knows a prompt already reads it from its cache and
// not by a prefill, so no prompt may be asked for twice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/tokenizer_files.h"

namespace oscar {

struct ServerArguments {
  std::string url;                // with /v1 at its end or without
  std::string model;              // as the server names it; empty: its only or default one
  int64_t timeout_seconds = 300;  // of an answer
  std::string api_key = {};       // never sent over http to another machine
  std::function<bool()> stop_requested = {};
};

// What was generated behind a prompt, up to the first token whose text does not tell its id.
struct ServedCompletion {
  std::vector<int32_t> ids;
  std::vector<double> log_probs;  // of these, nats
};

class CompletionsClient {
 public:
  // Throws UsageError for an address that is none. `tokenizer` is read where the server gives
  // tokens as text.
  CompletionsClient(ServerArguments server, LazyTokenizer tokenizer, int64_t vocab_size);

  // Greedy, at most `max_tokens` tokens. Throws ResourceError for a server that does not answer in
  // time, InputError for an answer that is not what was asked for, Interrupted.
  ServedCompletion Complete(const std::vector<int32_t>& prompt, int64_t max_tokens);

  const ServerArguments& server() const { return server_; }

 private:
  int64_t IdOf(const std::string& token, const std::string& where);

  ServerArguments server_;
  LazyTokenizer tokenizer_;
  int64_t vocab_size_;
  std::unordered_map<std::string, int32_t> ids_;  // of texts; see IdOf
};

}  // namespace oscar
