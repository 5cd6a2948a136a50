// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which sequences share a step of the loop, and puts all index tensors that steps need on
// the device before the loop begins. The grouping affects the last bits of products, so it depends
// only on the lengths of the sequences.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/model/run/decoder_layer.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Whole sequences that go through a layer together: as many as fit into a token chunk, or one
// longer sequence.
struct Span {
  size_t first_sequence = 0, num_sequences = 0;
  int64_t first_token = 0, num_tokens = 0;
};
std::vector<Span> MakeSpans(const std::vector<int64_t>& sequence_lengths, int64_t token_chunk);

// Experts process the tokens of a run stretch by stretch. A stretch consists of all spans that
// begin within this many token chunks. So a process that runs whole stretches takes the same expert
// steps as a process that runs everything.
inline constexpr int64_t kChunksOfStretch = 16;
inline int64_t StretchOf(int64_t first_token, int64_t token_chunk) {
  return first_token / (kChunksOfStretch * token_chunk);
}

struct RowRange {
  int64_t first = 0, count = 0;
};
// Splits rows into pieces of at most `token_chunk` rows.
std::vector<RowRange> ChunksOf(const std::vector<RowRange>& rows, int64_t token_chunk);

// Returns the factor on queries at `positions` [n] int32 or int64, for layers that have one
// (position_beta). // [n, 1, 1] float32
at::Tensor QueryScale(const AttentionSpec& attention, const at::Tensor& positions);

// Positions of all tokens and the rope tables of all layers.
class RopePositions {
 public:
  RopePositions(const ModelSpec& spec, const std::vector<int64_t>& sequence_lengths,
                const WeightTarget& target);

  // Returns cosines and sines of the tokens [first_token, first_token + num_tokens); does not wait
  // for the device.
  RopeRows Rows(const RopeSpec& rope, int64_t first_token, int64_t num_tokens) const;
  // Also sets the position-dependent factor on queries, for layers that have such a factor.
  RopeRows Rows(const AttentionSpec& attention, int64_t first_token, int64_t num_tokens) const;

 private:
  struct Table {
    RopeSpec rope;
    RopeRows rows;
    at::Tensor row_of;  // [T_total] int32 per token; positions_ itself for most ropes
  };
  Table MakeTable(const RopeSpec& rope, const std::vector<int64_t>& sequence_lengths,
                  const WeightTarget& target) const;

  at::Tensor positions_;  // [T_total] int32
  std::vector<Table> tables_;
};

}  // namespace oscar
