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

// A token that is predicted: token `position` of a sequence, from the hidden state before it.
struct ScoredToken {
  int64_t sequence = 0;
  int64_t position = 0;    // of the predicted token, at least 1
  int64_t length = 0;      // of the sequence
  int64_t hidden_row = 0;  // of the position before it, in the concatenation of all sequences
  int32_t id = 0;
  std::span<const int32_t> rivals = {};  // among which it may be the most likely; none: all tokens
};

// Errors of one arm, one element per scored token.
struct TokenErrors {
  std::vector<float> nll;        // -log p(id), nats
  std::vector<float> kl;         // KL(p || p^) over the vocabulary, nats
  std::vector<uint8_t> agrees;   // same most likely token as the reference
  std::vector<uint8_t> is_top1;  // the id is the most likely token, or than its rivals
};

// streams[0] is the reference; [T_total, hidden_size] each. Works in pieces that fit into memory.
std::vector<TokenErrors> CompareTokens(const OutputHead& head, std::span<const at::Tensor> streams,
                                       std::span<const ScoredToken> tokens,
                                       const std::function<void(double part)>& on_part = {});

// Tokens score_from, score_from + 1, ... of every text; score_from < 0: the last three quarters of
// each text, from token length / 4 + 1 on. Leaves out tokens whose query does not count in
// `counted` (of the texts), or sees at most `exact_tokens` keys, which the windows keep exact.
// `first_row` is the hidden row where the first text begins.
std::vector<ScoredToken> ScoredTokens(const std::vector<std::vector<int32_t>>& texts,
                                      int64_t first_row, int64_t score_from, int64_t exact_tokens,
                                      const CountedQueries& counted = {});

// The mean and its standard error, assuming independent values, as llama-perplexity does for
// tokens. The error is 0 for fewer than two values.
struct MeanError {
  double mean = 0, error = 0;
};
MeanError MeanWithError(std::span<const double> values);

// The member "text" of an arm in report.json, and kPieces (piece_sums.h).
Json TextReport(std::span<const ScoredToken> tokens, const TokenErrors& arm,
                const TokenErrors& reference, int64_t resamples, uint64_t seed);

}  // namespace oscar
