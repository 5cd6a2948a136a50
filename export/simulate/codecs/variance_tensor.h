// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVarN's variance normalization and its tiles (linalg/variance_normalization.h) for tensors on any
// device, all tiles at once. Results equal the scalar ones bit for bit. Scales and zeros belong to
// a tile's rows, which are channels for keys and tokens for values.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/stored_float.h"

namespace oscar {

struct VarianceFactorTensors {
  at::Tensor columns, rows;  // [..., 1, columns], [..., rows, 1]
  at::Tensor imbalance;      // [..., 1, 1]
};

// `tiles`: [..., rows, columns] float32 or float64.
VarianceFactorTensors NormalizeVariance(const at::Tensor& tiles, int iterations);

struct KvarnTileTensors {
  at::Tensor codes;          // [..., rows, columns], whole numbers in the type of the tiles
  at::Tensor scales, zeros;  // [..., rows, 1]
  at::Tensor columns;        // [..., 1, columns]
};

KvarnTileTensors EncodeKvarnTiles(const at::Tensor& tiles, int bits, int iterations,
                                  StoredFloat metadata = StoredFloat::kFloat16);
at::Tensor DecodeKvarnTiles(const KvarnTileTensors& encoded);

}  // namespace oscar
