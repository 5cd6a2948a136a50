// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The rotary embedding and the cache slots of new tokens in growing sequences. Trap: with some
// embeddings (dynamic, longrope), a sequence that exceeds a certain length rotates its earlier
// tokens differently too, so its cache becomes invalid.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/weight_loader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Whether the keys of earlier tokens change when a sequence has just grown to `length` tokens.
bool TurnsEarlierTokens(const ModelSpec& spec, int64_t length);

class DecodePositions {
 public:
  // Supports sequences of up to `capacity` tokens. Keeps a reference to the spec.
  DecodePositions(const ModelSpec& spec, int64_t capacity, const WeightTarget& target);

  // Sets the new tokens: tokens first[s] .. lengths[s] - 1 of each sequence s, in order of
  // sequences. Reuses the memory if there are as many new tokens as before.
  void Set(const std::vector<int64_t>& first, const std::vector<int64_t>& lengths);

  // Returns the rope rows of the new tokens [first_row, first_row + num_rows).
  RopeRows Rows(const AttentionSpec& attention, int64_t first_row, int64_t num_rows) const;
  const at::Tensor& slots() const { return slots_; }  // [new tokens] int64: s * capacity + position
  const at::Tensor& lengths() const { return lengths_; }  // [sequences] int64

 private:
  struct Rope {
    RopeSpec spec;
    std::map<int64_t, RopeRows> tables;  // keyed by length class  // [capacity, 1, NumPairs]
    RopeRows rows;                       // for the new tokens
  };
  void SetRows(Rope& rope, const std::vector<int64_t>& first, const std::vector<int64_t>& lengths);

  int64_t capacity_;
  WeightTarget target_;
  std::vector<Rope> ropes_;
  at::Tensor positions_, slots_, lengths_;  // int64
};

}  // namespace oscar
