// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors that arms cause in the next-token distribution, at chosen rows of the final hidden states:
// negative log likelihood, KL against the reference, top-1. Trap: this KL runs over the vocabulary,
// while attention-KL runs over keys.
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

// A predicted token: token `position` of a sequence, predicted from the hidden state before it.
struct ScoredToken {
  int64_t sequence = 0;
  int64_t position = 0;    // position of the predicted token, at least 1
  int64_t length = 0;      // tokens of the sequence
  int64_t hidden_row = 0;  // row of the previous position in all sequences concatenated
  int32_t id = 0;
  std::span<const int32_t> rivals = {};  // is_top1 compares only with these; none: all tokens
};

// Errors of one arm, with one element per scored token.
struct TokenErrors {
  std::vector<float> nll;        // -log p(id), nats
  std::vector<float> kl;         // KL(p || p^) over the vocabulary, nats
  std::vector<uint8_t> agrees;   // the most likely token is that of the reference
  std::vector<uint8_t> is_top1;  // the id is likelier than all tokens, or than its rivals
};

// Compares each stream [T_total, hidden_size] with streams[0], the reference. Works in pieces that
// fit into memory.
std::vector<TokenErrors> CompareTokens(const OutputHead& head, std::span<const at::Tensor> streams,
                                       std::span<const ScoredToken> tokens,
                                       const std::function<void(double part)>& on_part = {});

// Returns tokens score_from, score_from + 1, ... of every text. score_from < 0: from token length /
// 4 + 1 on, the last three quarters of each text. Leaves out tokens whose query does not count in
// `counted` (for the texts), or sees at most `exact_tokens` keys, which the windows keep exact.
// `first_row`: the hidden row where the first text begins.
std::vector<ScoredToken> ScoredTokens(const std::vector<std::vector<int32_t>>& texts,
                                      int64_t first_row, int64_t score_from, int64_t exact_tokens,
                                      const CountedQueries& counted = {});

// A mean and its standard error, assuming independent values, as llama-perplexity does for tokens.
// The error is 0 for fewer than two values.
struct MeanError {
  double mean = 0, error = 0;
};
MeanError MeanWithError(std::span<const double> values);

// Returns the member "text" of an arm in report.json, and kPieces (piece_sums.h).
Json TextReport(std::span<const ScoredToken> tokens, const TokenErrors& arm,
                const TokenErrors& reference, int64_t resamples, uint64_t seed);

}  // namespace oscar
