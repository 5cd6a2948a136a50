// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores ways to store the cache of one layer on sampled held-out rows, in the arithmetic of a bf16
// runtime: rows rotated by a bf16 GEMM, exact tokens also stored rotated, queries rounded after
// their own rotation. Trap: keys and queries stay in the transformed space, where no inverse is
// needed, so exact keys must be transformed as well as quantized ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calib/cache/side_tensors.h"
#include "calib/choose/choice.h"
#include "calib/observe/sampled_rows.h"
#include "calib/observe/statistics_observer.h"

namespace oscar {

// Scores on sampled rows, which alternate between two sets: choosing rows and judging rows.
struct HeadScores {
  std::vector<double> score, check;   // [num_kv_heads]
  std::vector<double> of_texts = {};  // [texts] mean over heads, on the choosing rows
};
double Mean(const std::vector<double>& heads);

class AutoScorer {
 public:
  // Limits of the sample: RowsOf query rows from each of kSequences sequences, and keys at
  // positions below kTokens. With many heads, fewer rows average out the noise.
  static int64_t RowsOf(const AttentionSpec& spec) { return spec.num_q_heads < 16 ? 64 : 32; }
  static constexpr int64_t kSequences = 8, kTokens = 4096;
  // Maximum number of values in a tensor that batches sequences, sides and clip ratios. It is large
  // enough to fill a GPU; on a CPU they are processed one after another.
  static int64_t ValuesAtOnce(at::DeviceType device);

  // Keeps a reference to `spec`. Half of the rows are shifted by `offset` positions, as in a longer
  // context (position_spread.h). Scores are computed with `windows[0]`; if no row reaches beyond
  // these windows, everything is quantized. If all rows of a sequence come after its first kTokens
  // tokens, they only read kTokens tokens: its sink tokens and its most recent ones. Throws
  // InputError if no sequence has both a choosing and a judging row.
  AutoScorer(const ObservedLayer& layer, const LayerSpec& spec, std::vector<CacheWindows> windows,
             int64_t offset, int64_t values_at_once);

  int64_t rows() const { return rows_; }
  bool rows_in_windows() const { return in_windows_; }
  int64_t RowsBeyond(const CacheWindows& windows) const;

  // Transformed sides, for each batch of sequences.
  struct Rotated {
    struct Rows {
      at::Tensor rows;     // [sides, sequences, num_kv_heads, tokens, dim] float32, values of bf16
      at::Tensor sorted;   // their magnitudes, ascending
      at::Tensor queries;  // keys: [sides, sequences, num_kv_heads, gqa_ratio * rows, dim]
      at::Tensor exact_logits;  // keys: logits of unquantized rows
    };
    std::vector<Rows> batches;
    SidesOnDevice sides;
  };
  using Sides = std::span<const CacheSide* const>;
  Rotated RotateKeys(Sides sides) const { return Rotate(sides, true); }
  Rotated RotateValues(Sides sides) const { return Rotate(sides, false); }

  // The index of a side, and one clip ratio for all KV heads or one for each.
  struct Trial {
    size_t side = 0;
    std::vector<double> clip;
  };
  using Trials = std::span<const Trial>;
  using Quantizer = AffineFormat;  // quant_group_size 0: the head dimension
  // Return KL(S || S^) in nats per KV head.
  std::vector<HeadScores> ScoreKeys(const Rotated& keys, Trials trials, Quantizer quantizer) const;
  // Returns the mean KL over all sampled rows: [trials][windows][num_kv_heads].
  using WindowScores = std::vector<std::vector<double>>;
  std::vector<WindowScores> ScoreWindows(const Rotated& keys, Trials trials,
                                         Quantizer quantizer) const;
  // Returns |(P^ - P) V| / |P V| per KV head, over all sampled rows, with exact values.
  std::vector<double> KeyOutputErrors(const Rotated& keys, const Trial& trial,
                                      Quantizer quantizer) const;
  // Scores latent rows, which are both key and value, with errors in both. `kl` is as for keys.
  // `output` is the mean over rows of |P^ V^ - P V| / |P V|, for outputs after W_UV. (In a ratio of
  // sums, the few rows with the largest outputs would dominate.)
  struct LatentScores {
    HeadScores kl, output;
  };
  std::vector<LatentScores> ScoreLatents(const Rotated& latents, Trials trials,
                                         Quantizer quantizer) const;
  // Returns |P (V^ - V)| / |P V| per KV head, with exact scores, over quantized tokens.
  std::vector<HeadScores> ScoreValues(const Rotated& values, Trials trials,
                                      Quantizer quantizer) const;
  // Score as many sides at once as ValuesAtOnce() allows. `trials` are sorted by side.
  std::vector<HeadScores> ScoreKeys(Sides sides, Trials trials, Quantizer quantizer) const;
  std::vector<HeadScores> ScoreValues(Sides sides, Trials trials, Quantizer quantizer) const;

 private:
  // Some trials on one batch: their stored rows, and the sides these came from.
  struct Stored {
    SampledRows::Keys keys;  // for values, only `stored` is set
    at::Tensor exact;        // rows before they were quantized
    SidesOnDevice sides;     // of trials, or one for all
  };
  // Sums over the rows of a batch, [trials, num_kv_heads, 2 + texts] each.
  using Sums = std::vector<at::Tensor>;
  using Measure = std::function<Sums(const SampledRows&, const Stored&)>;
  std::vector<HeadScores> MeanOverRows(const at::Tensor& sums) const;
  at::Tensor OutputSums() const;
  Sums OfTrials(const Rotated& rotated, Trials trials, Quantizer quantizer,
                const Measure& measure) const;
  Rotated Rotate(Sides sides, bool keys) const;
  // Calls `score` with as many sides at once as possible.
  std::vector<HeadScores> BySides(
      Sides sides, Trials trials, bool keys,
      const std::function<std::vector<HeadScores>(const Rotated&, Trials)>& score) const;
  // `positions` of all rows are relative to `begin`.
  void AddSequence(const ObservedLayer& layer, const HeldOutQueries& queries, int64_t begin,
                   const at::Tensor& positions, const std::vector<int64_t>& rows, int64_t offset,
                   std::vector<SampledSequence>& sequences);
  void MakeBatches(std::span<const SampledSequence> sequences, const at::Tensor& output_map);

  const LayerSpec& spec_;
  std::vector<CacheWindows> windows_;
  int64_t values_at_once_;
  std::vector<SampledRows> batches_;
  std::vector<at::Tensor> positions_;  // positions of the rows in each sequence; on the host
  int64_t rows_ = 0;
  bool in_windows_ = false;
};

}  // namespace oscar
