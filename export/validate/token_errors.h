// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The errors that arms cause in next-token distributions, at chosen rows of the final hidden
// states: negative log likelihood, KL from the reference and top-1 agreement. Trap: this KL is over
// the vocabulary, while attention-KL is over keys.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calib/held_out.h"  // CountedQueries
#include "capture/files/strict_json.h"
#include "capture/model/run/output_head.h"

namespace oscar {

// A predicted token, which is at `position` of a sequence. The hidden state before it predicts it.
struct ScoredToken {
  int64_t sequence = 0;
  int64_t position = 0;    // position of the predicted token, at least 1
  int64_t length = 0;      // tokens of the sequence
  int64_t hidden_row = 0;  // row of the previous position in the stream
  int32_t id = 0;
  std::span<const int32_t> rivals = {};  // is_top1 compares only with these; empty: all tokens
};

// Errors of one arm, with one element per scored token.
struct TokenErrors {
  std::vector<float> nll;        // -log p(id), nats
  std::vector<float> kl;         // KL(p || p^) over the vocabulary, nats
  std::vector<uint8_t> agrees;   // the most likely token is the reference's
  std::vector<uint8_t> is_top1;  // the id is likelier than its rivals, or than all tokens
};

// Compares each stream's hidden states, [T_total, hidden_size], with streams[0], the reference.
// Works in pieces that fit into memory.
std::vector<TokenErrors> CompareTokens(const OutputHead& head, std::span<const at::Tensor> streams,
                                       std::span<const ScoredToken> tokens,
                                       const std::function<void(double part)>& on_part = {});

// Returns the tokens to score of every text: those from position `score_from` on, or from length /
// 4 + 1 on (the last three quarters) if it is negative. Leaves out a token if its query does not
// count in `counted`, or sees at most `exact_tokens` keys, which windows keep exact. `first_row` is
// the hidden row where the first text begins.
std::vector<ScoredToken> ScoredTokens(const std::vector<std::vector<int32_t>>& texts,
                                      int64_t first_row, int64_t score_from, int64_t exact_tokens,
                                      const CountedQueries& counted = {});

// A mean and its standard error. Values are assumed to be independent, as llama-perplexity assumes
// for tokens. The error is 0 for fewer than two values.
struct MeanError {
  double mean = 0, error = 0;
};
MeanError MeanWithError(std::span<const double> values);

// Returns the member "text" of an arm in report.json, including kPieces (piece_sums.h).
Json TextReport(std::span<const ScoredToken> tokens, const TokenErrors& arm,
                const TokenErrors& reference, int64_t resamples, uint64_t seed);

}  // namespace oscar
