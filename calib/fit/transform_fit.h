// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits the transforms of linalg/key_transform.h to second moments, one KV head at a time. Centring
// keys changes logits by a constant per query, which softmax ignores. Keys that are not centred
// spend bits on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "linalg/key_transform.h"

namespace oscar {

// The matrix that keys are multiplied with before they are quantized. Names are stored and never
// change.
enum class KeyTransformKind {
  kOscar,       // oscar: an orthogonal rotation fitted to the queries
  kPairScaled,  // pair_scaled: a diagonal that commutes with rope, then OSCAR; folds into weights
  kBalanced,    // balanced: any invertible matrix; queries need one of their own
};
std::string_view KeyTransformName(KeyTransformKind kind);
KeyTransformKind KeyTransformFromName(std::string_view name);  // throws UsageError listing them

// How keys are transformed before they are quantized.
struct KeyRecipe {
  KeyTransformKind kind = KeyTransformKind::kOscar;
  bool power_of_two = false;  // kPairScaled
  bool folded = true;         // kPairScaled: into the checkpoint; else into both matrices
  double epsilon = 0;         // kBalanced: shrinkage of both moments
  bool per_head = false;      // a matrix for each KV head, or one for the layer
  bool centred = false;       // keys lose their mean before the transform
  double mean_share = 1;      // or this share of it, for a mean that moves from text to text
  bool feedback = false;      // rounding errors are fed back at the write
  Composition composition = Composition::kRHPbr;

  std::string Name() const;                          // "pair_scaled_pow2 per_head centred r_h_pbr"
  static KeyRecipe FromName(std::string_view name);  // throws InputError for any other text
  bool operator==(const KeyRecipe&) const = default;
};

struct KeyFit {
  KeyTransform transform;
  Vector mean;  // [head_dim]; empty if keys are not centred
};

// Fits one KV head on its own, whatever the recipe says about the others; `pairs` is for
// kPairScaled. Throws InputError if the moments lack something that the kind needs, NumericalError
// naming layer and head if the moments have no transform.
KeyFit FitKeyTransform(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                       RopePairs pairs);

// One D [head_dim] for all heads of a layer, with the least sum of the heads' trace products.
// Weights that all heads share (QK-norm) can hold only one D.
Vector SharedPairScales(const LayerMoments& moments, const KeyRecipe& recipe, RopePairs pairs);
// The D [head_dim] of one KV head.
Vector HeadPairScales(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                      RopePairs pairs);

// The metric of the reader of values: the sum of W_O^T W_O over the head's query heads.
// `output_projection` [hidden, num_q_heads v_head_dim], as a checkpoint stores o_proj.
Matrix OutputMetric(MatrixRef output_projection, const LayerMoments& moments, int64_t head);
KeyTransform FitValueTransform(const LayerMoments& moments, int64_t head, MatrixRef output_metric,
                               double epsilon, Composition composition);

}  // namespace oscar
