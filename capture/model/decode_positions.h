// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the new tokens of growing sequences stand: their rotary embedding and their place in a
// cache. With some embeddings (dynamic, longrope) a sequence that grows beyond a length turns
// its earlier tokens otherwise too, so that what a cache holds of it is no longer right.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "capture/model/decoder_layer.h"
#include "capture/model/model_spec.h"
#include "capture/model/weight_loader.h"

namespace oscar {

// Whether keys of a sequence that has just grown to `length` tokens are no longer those that its
// earlier tokens had.
bool TurnsEarlierTokens(const ModelSpec& spec, int64_t length);

class DecodePositions {
 public:
  // Of sequences up to `capacity` tokens. Keeps a reference to the spec.
  DecodePositions(const ModelSpec& spec, int64_t capacity, const WeightTarget& target);

  // The new tokens: of sequence s those at first[s] .. lengths[s] - 1, sequence by sequence. As
  // many as before come into the memory of those before.
  void Set(const std::vector<int64_t>& first, const std::vector<int64_t>& lengths);

  // Of the new tokens [first_row, first_row + num_rows).
  RopeRows Rows(const AttentionSpec& attention, int64_t first_row, int64_t num_rows) const;
  const at::Tensor& slots() const { return slots_; }  // [new tokens] int64: s * capacity + position
  const at::Tensor& lengths() const { return lengths_; }  // [sequences] int64

 private:
  struct Rope {
    RopeSpec spec;
    std::map<int64_t, RopeRows> tables;  // by length class  // [capacity, 1, NumPairs]
    RopeRows rows;                       // of the new tokens
  };
  void SetRows(Rope& rope, const std::vector<int64_t>& first, const std::vector<int64_t>& lengths);

  int64_t capacity_;
  WeightTarget target_;
  std::vector<Rope> ropes_;
  at::Tensor positions_, slots_, lengths_;  // int64
};

}  // namespace oscar
