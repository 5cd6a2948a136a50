// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits the transforms of linalg/key_transform.h to second moments, one KV head at a time. Centring
// keys changes all logits of a query by the same constant, which softmax ignores. Without centring,
// bits are spent on that constant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "linalg/key_transform.h"

namespace oscar {

// The matrix by which keys are multiplied before they are quantized. Names are stored and never
// change.
enum class KeyTransformKind {
  kOscar,       // oscar: an orthogonal rotation fitted to the queries
  kPairScaled,  // pair_scaled: a diagonal that commutes with rope, then OSCAR; folds into weights
  kBalanced,    // balanced: any invertible matrix; queries need their own
};
std::string_view KeyTransformName(KeyTransformKind kind);
KeyTransformKind KeyTransformFromName(std::string_view name);  // throws UsageError listing names

// How keys are transformed before they are quantized.
struct KeyRecipe {
  KeyTransformKind kind = KeyTransformKind::kOscar;
  bool power_of_two = false;  // for kPairScaled
  bool folded = true;         // for kPairScaled: into the checkpoint; if false, into both matrices
  double epsilon = 0;         // for kBalanced: shrinkage of both moments
  bool per_head = false;      // a matrix for each KV head; if false, one for the layer
  bool centred = false;       // the mean of keys is subtracted before the transform
  double mean_share = 1;      // share of the mean to subtract, as means vary from text to text
  bool feedback = false;      // rounding errors are fed back when rows are written
  Composition composition = Composition::kRHPbr;

  std::string Name() const;                          // "pair_scaled_pow2 per_head centred r_h_pbr"
  static KeyRecipe FromName(std::string_view name);  // throws InputError for any other text
  bool operator==(const KeyRecipe&) const = default;
};

struct KeyFit {
  KeyTransform transform;
  Vector mean;  // [head_dim]; empty if keys are not centred
};

// Fits one KV head by itself, even if the recipe has one matrix for all heads; kPairScaled uses
// `pairs`. Throws InputError if the moments lack something that the kind needs. Throws
// NumericalError naming layer and head if there is no transform for the moments.
KeyFit FitKeyTransform(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                       RopePairs pairs);

// Returns the D [head_dim] for all heads of a layer that minimizes the sum of the heads' trace
// products. Weights that all heads share (QK-norm) can only hold one D.
Vector SharedPairScales(const LayerMoments& moments, const KeyRecipe& recipe, RopePairs pairs);
// Returns the D [head_dim] of one KV head.
Vector HeadPairScales(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                      RopePairs pairs);

// Returns the metric for values, whose reader is the output projection: the sum of W_O^T W_O over
// the head's query heads. `output_projection` [hidden, num_q_heads v_head_dim], as a checkpoint
// stores o_proj.
Matrix OutputMetric(MatrixRef output_projection, const LayerMoments& moments, int64_t head);
KeyTransform FitValueTransform(const LayerMoments& moments, int64_t head, MatrixRef output_metric,
                               double epsilon, Composition composition);

}  // namespace oscar
