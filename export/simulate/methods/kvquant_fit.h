// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits KVQuant (arXiv 2401.18079) to the rows of one layer: ranges of key channels before rope, and
// k-means levels for keys and for values. A channel is one dimension of one KV head. A token's
// values are those of all its heads together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "export/simulate/cache_method.h"
#include "export/simulate/codecs/nonuniform_tensor.h"

namespace oscar {

enum class KvQuantLevels { kKMeans, kUniform };

struct KvQuantOptions {
  int bits = 2;  // 0: not quantized
  KvQuantLevels levels = KvQuantLevels::kKMeans;
  double kept = 0.99;           // 1 - fraction of outliers; 1: no outliers
  bool q_norm = false;          // for k-means levels
  int64_t first_tokens = 1;     // exact, and left out of the fit
  int64_t max_iterations = 50;  // limit for k-means
  uint64_t seed = 0;
};

struct KvQuantLayer {
  NonuniformFormat k, v;
  TensorRange k_range;  // [1, num_kv_heads * head_dim] float32, rounded to float16
};

// Throws InputError if no sequence is longer than first_tokens, or if keys or values do not vary.
KvQuantLayer FitKvQuant(const RopeSpec& rope, const CalibrationRows& rows,
                        const KvQuantOptions& options);

LayerCache KvQuantCache(const RopeSpec& rope, const KvQuantLayer& layer,
                        const KvQuantOptions& options);

}  // namespace oscar
