// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NSNQuant's codec (arXiv 2505.18231, sections 3.2 to 3.4). The tokens of a block are normalized,
// centred and normalized again, which gives nearly independent normal values. Each group of eight
// values is rounded to an entry of a codebook. The codebook is fitted to normal draws and is the
// same for every model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

inline constexpr int64_t kNsnBlock = 64;      // tokens that share a mean
inline constexpr int64_t kNsnWidth = 8;       // values per code
inline constexpr int64_t kNsnMeanGroup = 32;  // channels of a mean that share a scale

// A block of tokens x, split so that x = norm (scale row + mean). `norms` and `means` are already
// rounded to 4 bits; `rows` are still to be rounded to the codebook. A token of zeros has norm 0.
struct NsnBlocks {
  at::Tensor rows;    // [blocks, tokens, num_kv_heads, dim], with norm sqrt(dim)
  at::Tensor norms;   // [blocks, tokens, num_kv_heads, 1]
  at::Tensor means;   // [blocks, 1, num_kv_heads, dim]
  at::Tensor scales;  // [blocks, tokens, num_kv_heads, 1], not yet rounded
};

// Splits blocks [blocks, tokens, num_kv_heads, dim], float32 or float64. Norms and means are
// rounded to 4 bits, with a float16 scale and minimum for the norms of a block and for every
// kNsnMeanGroup channels of a mean.
NsnBlocks NormalizeShiftNormalize(const at::Tensor& blocks);

// Returns the codebook [256, kNsnWidth] float64 on the host. It contains k-means centroids of
// normal draws (bits 1) or of their magnitudes (bits 2, with signs stored separately). Its values
// are rounded to 4 bits, like those of the released codebooks. The paper also refines the codebooks
// by gradient descent on cosines; this code does not.
const at::Tensor& NsnCodebook(int bits);

// Replaces every kNsnWidth values of rows [..., dim] by the nearest entry (with signs if bits = 2).
// `dim`: a multiple of kNsnWidth.
at::Tensor NsnRead(const at::Tensor& rows, int bits);

// Multiplies the scales by |row|^2 / <row, read>, which makes the error orthogonal to `rows`, and
// rounds them to float16.
at::Tensor NsnScales(const at::Tensor& scales, const at::Tensor& rows, const at::Tensor& read);

}  // namespace oscar
