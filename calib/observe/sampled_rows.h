// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampled query rows of several sequences, with the keys and values that they read, padded to one
// shape. So one matrix product serves all sequences and several caches; on a GPU, launching many
// small products would take most of the time. Even rows choose and odd rows judge, with separate
// sums. Traps: a padded row sees one token but has no weight, a padded token is hidden, and
// quantizers process both.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "calib/cache/logit_comparison.h"
#include "capture/model/spec/model_spec.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

struct SampledSequence {
  at::Tensor positions;     // [rows] int64, host
  at::Tensor queries;       // [rows, num_q_heads, d]
  at::Tensor keys, values;  // [tokens, num_kv_heads, dim], up to the last position
  // Latent attention only, otherwise undefined: the part of each logit that is never quantized.
  at::Tensor q_pe = {};  // [rows, num_q_heads, rope_dim]
  at::Tensor k_pe = {};  // [tokens, rope_dim]
};

// Numbers of the texts that rows belong to. The first sequence is text `first`, and numbers ascend
// from there. `total` texts are measured together.
struct TextsOfRows {
  int64_t first = 0, total = 0;
};

class SampledRows {
 public:
  // Measures outputs after `output_map` [num_q_heads, outputs, dv], if it is defined.
  SampledRows(const AttentionSpec& spec, std::span<const SampledSequence> sequences,
              std::span<const CacheWindows> windows, const at::Tensor& output_map = {},
              TextsOfRows texts = {});

  // [sequences, num_kv_heads, tokens, dim] float32
  const at::Tensor& keys() const { return keys_; }
  const at::Tensor& values() const { return values_; }
  // [sequences, num_kv_heads, gqa_ratio * rows, d] float32
  const at::Tensor& queries() const { return queries_; }
  int64_t num_scores() const { return p_.numel(); }  // for one cache

  // Keys of several caches, and the queries that read them, transformed so that logits need no
  // inverse: [caches, sequences, num_kv_heads, ...].
  struct Keys {
    at::Tensor stored;   // [..., tokens, d], as read back after quantization
    at::Tensor queries;  // [..., gqa_ratio * rows, d]
    // The result of ExactLogits, or only its first cache if it is the same for all caches.
    // Undefined if no token is exact.
    at::Tensor exact_logits = {};
  };
  // Returns the logits of unquantized keys [..., tokens, d]: [caches, sequences, num_kv_heads,
  // gqa_ratio, rows, tokens]. Undefined if every token is quantized in all windows.
  at::Tensor ExactLogits(const at::Tensor& queries, const at::Tensor& keys) const;
  // Returns the sums of KL(S || S^) in nats, for each w of `which` with the tokens of windows[w]
  // exact: [caches, num_kv_heads, 2 + texts.total] float64. The last dimension has the sums over
  // even rows, over odd rows, and over the even rows of each text.
  std::vector<at::Tensor> KlSums(const Keys& keys, std::span<const size_t> which) const;
  // Sums |(P^ - P) V|^2, with the tokens of windows[0] exact.
  at::Tensor KeyErrorSums(const Keys& keys) const;
  // Sums |P (V^ - V)|^2, where V^ holds the values as read back. Only counts tokens that windows[0]
  // quantizes. `read` [caches, sequences, num_kv_heads, tokens, dv].
  at::Tensor ValueErrorSums(const at::Tensor& read) const;
  // Sums |P^ V^ - P V| / |P V| with errors in keys and values and the tokens of windows[0] exact.
  // `read` holds the values of quantized tokens, `exact_read` the values of exact tokens. Rows
  // whose P V is 0 count as having no error.
  at::Tensor RelativeErrorSums(const Keys& keys, const at::Tensor& read,
                               const at::Tensor& exact_read) const;
  const at::Tensor& output_sums() const { return output_sums_; }     // |P V|^2, summed over rows
  const std::vector<double>& num_rows() const { return num_rows_; }  // rows in each of those sums

 private:
  at::Tensor Products(const at::Tensor& queries, const at::Tensor& keys) const;
  CacheLogits LogitsIn(size_t windows, const at::Tensor& products, const Keys& keys) const;
  at::Tensor Scores(const Keys& keys) const;
  at::Tensor OutputEnergies(const at::Tensor& outputs) const;
  at::Tensor OutputSums(const at::Tensor& outputs) const;
  at::Tensor ByTurns(const at::Tensor& of_rows) const;

  double scale_, softcap_;
  at::Tensor sinks_;  // [num_kv_heads, gqa_ratio, 1, 1], if the layer has sinks
  at::Tensor keys_, values_, queries_;
  at::Tensor output_map_;       // [1, num_kv_heads, gqa_ratio, dv, outputs], or undefined
  at::Tensor position_logits_;  // [sequences, num_kv_heads, gqa_ratio, rows, tokens], or undefined
  at::Tensor hidden_;           // [sequences, 1, 1, rows, tokens] bool
  std::vector<at::Tensor> exact_;  // by windows, shaped like hidden_: exact tokens; undefined: none
  std::vector<at::Tensor> kept_;   // by windows, shaped like hidden_: hidden or exact tokens
  // [sequences, num_kv_heads, gqa_ratio, rows, tokens], with one more column if there are sinks
  LogAndScores own_;
  at::Tensor p_;                 // own_'s scores without that column
  at::Tensor quantized_scores_;  // [sequences, num_kv_heads, gqa_ratio * rows, tokens]
  at::Tensor turns_;             // [sequences * rows, 2 + texts] float64, 0 or 1
  at::Tensor output_energies_;   // |P V|^2: [1, sequences, num_kv_heads, gqa_ratio, rows]
  at::Tensor output_sums_;
  std::vector<double> num_rows_;
};

}  // namespace oscar
