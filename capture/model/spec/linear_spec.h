// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts that layers of all families have in common, as data: projections, norms, activations.
// Trap: a projection may consist of some rows of a stored tensor (fused q, k, v), so several
// projections may have the same tensor name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oscar {

// A stored tensor that the model needs.
struct TensorNeed {
  std::string name;
  std::vector<int64_t> shape;
};

// y = x Wᵀ + b
struct LinearSpec {
  std::string weight;  // tensor name; [out_features, in_features]; "": no such projection
  std::string bias;    // tensor name; [out_features], or "" for none
  int64_t in_features = 0, out_features = 0;
  // If stored_rows is not 0, W and b are only rows [first_row, first_row + out_features) of stored
  // tensors with stored_rows rows. If it is 0, they are whole tensors.
  int64_t first_row = 0, stored_rows = 0;
  // If piece_rows is not 0, those rows are not contiguous. They consist of pieces of piece_rows
  // rows, and a piece begins every piece_step stored rows. Example: queries, keys and values that
  // alternate head by head.
  int64_t piece_rows = 0, piece_step = 0;
  bool transposed = false;  // W is stored as [in_features, out_features]

  bool exists() const { return !weight.empty(); }
  bool whole() const { return stored_rows == 0; }
  void AddNeeds(std::vector<TensorNeed>& needs) const {
    if (!exists()) return;
    const int64_t rows = whole() ? out_features : stored_rows;
    needs.push_back({weight, transposed ? std::vector<int64_t>{in_features, rows}
                                        : std::vector<int64_t>{rows, in_features}});
    if (!bias.empty()) needs.push_back({bias, {rows}});
  }
};

// How a norm transforms x [.., size], with r = x / sqrt(mean(x²) + eps).
enum class NormKind {
  kNone,              // no norm
  kPlain,             // w * r
  kOnePlus,           // (1 + w) * r, in float32 (Gemma)
  kUnscaled,          // r
  kLayerNorm,         // w * (x - mean) / sqrt(var + eps) + b
  kLayerNormOnePlus,  // the same with 1 + w (Nemotron)
};

struct NormSpec {
  std::string weight;  // tensor name; [size]; "": w = 1, as for kNone and kUnscaled
  int64_t size = 0;
  NormKind kind = NormKind::kPlain;
  std::string bias = {};  // kLayerNorm: tensor name; [size], or "" for none
  // Number of heads that have their own weights; 0: one weight for all. The weights are one tensor
  // [heads, size], unless its name contains a #. Then each head has a tensor [size], whose name has
  // the head's number in place of the #.
  int64_t heads = 0;

  bool exists() const { return size > 0 && kind != NormKind::kNone; }
  // Whether each head's weight is a separate tensor. HeadWeight returns its name.
  bool stored_by_head() const { return weight.find('#') != std::string::npos; }
  std::string HeadWeight(int64_t head) const {
    return std::string(weight).replace(weight.find('#'), 1, std::to_string(head));
  }
};

enum class Activation {
  kSilu,
  kGeluTanh,
  kGelu,
  kRelu,
  kReluSquared,
  kXielu,  // arXiv 2411.13010; parameters in XieluSpec
};

// softplus(alpha_p) x² + beta x for x > 0, otherwise (expm1(min(x, eps)) - x) (beta +
// softplus(alpha_n)) + beta x.
struct XieluSpec {
  std::string alpha_p, alpha_n;     // tensor names; [1]
  std::string beta = {}, eps = {};  // tensor names of single values without dimensions, or "":
  double usual_beta = 0.5, usual_eps = -1e-6;  // used if these are not stored
};

// gate' = min(gate, limit); up' = clamp(up, -limit, limit); (up' + 1) gate' sigmoid(alpha gate')
struct ClampedGate {
  double limit = 7.0, alpha = 1.702;  // gpt-oss; not in its config.json
};

// down(inner_norm(activation(gate(x)) * up(x))) or, without a gate,
// down(inner_norm(activation(up(x))))
struct MlpSpec {
  int64_t intermediate_size = 0;
  Activation activation = Activation::kSilu;
  LinearSpec gate, up, down;
  NormSpec inner_norm = {};                                // [intermediate_size]
  XieluSpec xielu = {};                                    // used if the activation is kXielu
  std::optional<ClampedGate> clamped_gate = std::nullopt;  // replaces the activation and product
};

}  // namespace oscar
