// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Asks an OpenAI-compatible server (vLLM, SGLang, llama.cpp) to complete a prompt of token ids, and
// for the log probabilities. Trap: never send a prompt twice. The server would read the second one
// from its cache instead of prefilling it.
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
  std::string url;                // with or without /v1 at its end
  std::string model;              // the server's name for it; empty: its only or default one
  int64_t timeout_seconds = 300;  // limit for an answer
  std::string api_key = {};       // never sent over http to another machine
  std::function<bool()> stop_requested = {};
};

// The tokens generated after a prompt, up to the first one whose text does not determine its id.
struct ServedCompletion {
  std::vector<int32_t> ids;
  std::vector<double> log_probs;  // log probability of each id, in nats
};

class CompletionsClient {
 public:
  // Throws UsageError for an invalid address. `tokenizer` is read only if the server returns tokens
  // as text without ids.
  CompletionsClient(ServerArguments server, LazyTokenizer tokenizer, int64_t vocab_size);

  // Generates at most `max_tokens` tokens greedily. Throws ResourceError if the server does not
  // answer in time, InputError if the answer does not fit the request, or Interrupted.
  ServedCompletion Complete(const std::vector<int32_t>& prompt, int64_t max_tokens);

  const ServerArguments& server() const { return server_; }

 private:
  int64_t IdOf(const std::string& token, const std::string& where);

  ServerArguments server_;
  LazyTokenizer tokenizer_;
  int64_t vocab_size_;
  std::unordered_map<std::string, int32_t> ids_;  // by text; see IdOf
};

}  // namespace oscar
