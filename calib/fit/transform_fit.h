// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From second moments to the transforms of linalg/key_transform.h, one KV head at a time.
// Centred keys lose a constant per query, which softmax does not see; uncentred ones spend bits on
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "linalg/key_transform.h"

namespace oscar {

// What keys are multiplied with before they are quantized. Names are stored and never change.
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
  Vector mean;  // [head_dim]; empty where keys are not centred
};

// Of one KV head by itself, whatever the recipe says of the others; `pairs` for kPairScaled. Throws
// InputError where the moments lack what the kind needs, NumericalError naming layer and head for
// moments that have no transform.
KeyFit FitKeyTransform(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                       RopePairs pairs);

// One D for all heads of a layer, the least sum of the heads' trace products: what weights that all
// heads share (QK-norm) can hold. [head_dim]
Vector SharedPairScales(const LayerMoments& moments, const KeyRecipe& recipe, RopePairs pairs);
// KV head `head` alone. [head_dim]
Vector HeadPairScales(const LayerMoments& moments, int64_t head, const KeyRecipe& recipe,
                      RopePairs pairs);

// Values against the metric of what reads them: the sum of W_O^T W_O over the head's query heads.
// `output_projection` [hidden, num_q_heads v_head_dim], as a checkpoint stores o_proj.
Matrix OutputMetric(MatrixRef output_projection, const LayerMoments& moments, int64_t head);
KeyTransform FitValueTransform(const LayerMoments& moments, int64_t head, MatrixRef output_metric,
                               double epsilon, Composition composition);

}  // namespace oscar
