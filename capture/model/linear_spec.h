// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts that layers of every family are made of, as data: projections, norms, activations.
// Trap: a projection may be some rows of a stored tensor (fused q, k, v), so its name says where it
// is stored, not that the tensor is its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oscar {

// A stored tensor the model needs.
struct TensorNeed {
  std::string name;
  std::vector<int64_t> shape;
};

// y = x Wᵀ + b
struct LinearSpec {
  std::string weight;  // tensor name; [out_features, in_features]; "": this part does not exist
  std::string bias;    // tensor name; [out_features], or "" for none
  int64_t in_features = 0, out_features = 0;
  // Where W and b are rows first_row .. first_row + out_features of stored tensors that have
  // stored_rows of them; stored_rows 0: they are the whole of it.
  int64_t first_row = 0, stored_rows = 0;

  bool exists() const { return !weight.empty(); }
  bool whole() const { return stored_rows == 0; }
};

// What a norm does with x [.., size]: r = x / sqrt(mean(x²) + eps), then
enum class NormKind {
  kNone,       // there is none
  kPlain,      // w * r
  kOnePlus,    // (1 + w) * r, in float32 (Gemma)
  kUnscaled,   // r
  kLayerNorm,  // w * (x - mean) / sqrt(var + eps) + b
};

struct NormSpec {
  std::string weight;  // tensor name; [size]; "" for kNone and kUnscaled
  int64_t size = 0;
  NormKind kind = NormKind::kPlain;
  std::string bias = {};  // kLayerNorm: tensor name; [size], or "" for none

  bool exists() const { return size > 0 && kind != NormKind::kNone; }
};

enum class Activation { kSilu, kGeluTanh, kGelu };

// down(activation(gate(x)) * up(x)); where there is no gate, down(activation(up(x)))
struct MlpSpec {
  int64_t intermediate_size = 0;
  Activation activation = Activation::kSilu;
  LinearSpec gate, up, down;
};

}  // namespace oscar
