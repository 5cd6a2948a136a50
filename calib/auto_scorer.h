// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores ways to store the cache of one layer on sampled held-out rows, in the arithmetic of a bf16
// runtime: rows rotated by a bf16 GEMM, windows kept rotated, queries rounded after their own
// rotation. Trap: keys and queries stay in the transformed space, where no inverse is needed, so
// exact and quantized keys must both have been transformed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "calib/auto_choice.h"
#include "calib/row_comparison.h"
#include "calib/statistics_observer.h"

namespace oscar {

// Sampled rows go by turns to two sets: those that choose and those that judge.
struct HeadScores {
  std::vector<double> score, check;  // [num_kv_heads]
};
double Mean(const std::vector<double>& heads);

class AutoScorer {
 public:
  // At most this many query rows of each of this many sequences, and keys no further back.
  static constexpr int64_t kRows = 64, kSequences = 4, kTokens = 4096;

  // Keeps references to both. Half of the rows stand `offset` tokens further back than they did, as
  // in a longer context (position_spread.h). `windows[0]` is what scores hold for; where no row
  // reaches beyond it, everything is quantized instead.
  AutoScorer(const ObservedLayer& layer, const LayerSpec& spec, std::vector<CacheWindows> windows,
             int64_t offset = 0);
  ~AutoScorer();

  int64_t rows() const { return rows_; }
  bool rows_in_windows() const { return in_windows_; }
  int64_t RowsBeyond(const CacheWindows& windows) const;

  // One side after its transform, sequence by sequence; of values it keeps a reference to the side.
  struct Rotated {
    std::vector<at::Tensor> rows;     // [num_kv_heads, tokens, dim] float32, values of bf16
    std::vector<at::Tensor> sorted;   // their magnitudes, ascending
    std::vector<at::Tensor> queries;  // keys: [rows, num_q_heads, dim]
    const AutoSide* side = nullptr;   // values
  };
  Rotated RotateKeys(const AutoSide& side) const;
  Rotated RotateValues(const AutoSide& side) const;

  struct Quantizer {
    int bits = 2;
    std::vector<double> clip;      // [1] or [num_kv_heads]
    int64_t quant_group_size = 0;  // 0: the head
  };
  // KL(S || S^) in nats per KV head.
  HeadScores ScoreKeys(const Rotated& keys, const Quantizer& quantizer) const;
  // Its mean over all sampled rows and heads in each of the windows.
  std::vector<double> ScoreWindows(const Rotated& keys, const Quantizer& quantizer) const;
  // |(P^ - P) V| / |P V| per KV head, over all sampled rows: exact values.
  std::vector<double> KeyOutputErrors(const Rotated& keys, const Quantizer& quantizer) const;
  // |P (V^ - V)| / |P V| per KV head: exact scores, over what is quantized.
  HeadScores ScoreValues(const Rotated& values, const Quantizer& quantizer) const;

 private:
  struct Sequence;

  // One result for each of `exact`.
  std::vector<RowErrors> CompareKeys(size_t sequence, const Rotated& keys,
                                     const Quantizer& quantizer,
                                     std::span<const ExactSides> exact) const;

  void AddSequence(const ObservedLayer& layer, const HeldOutQueries& queries,
                   const at::Tensor& positions, const std::vector<int64_t>& rows, int64_t offset);

  const LayerSpec& spec_;
  std::vector<CacheWindows> windows_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  int64_t rows_ = 0;
  bool in_windows_ = false;
};

}  // namespace oscar
