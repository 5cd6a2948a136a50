// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NSNQuant's codec (arXiv 2505.18231, sections 3.2 to 3.4). Tokens of a block are normalized,
// centred and normalized again, which gives nearly independent normal values. These are rounded
// eight at a time to a codebook that was fitted to normal draws once and serves every model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

inline constexpr int64_t kNsnBlock = 64;      // tokens that share a mean
inline constexpr int64_t kNsnWidth = 8;       // values per code
inline constexpr int64_t kNsnMeanGroup = 32;  // channels of a mean that share a scale

// A block x of tokens as norm (scale row + mean), where `rows` are rounded to the codebook. Norms
// and means are the values read from their 4 bits. A token of zeros has the norm 0.
struct NsnBlocks {
  at::Tensor rows;    // [blocks, tokens, num_kv_heads, dim], with norm sqrt(dim)
  at::Tensor norms;   // [blocks, tokens, num_kv_heads, 1]
  at::Tensor means;   // [blocks, 1, num_kv_heads, dim]
  at::Tensor scales;  // [blocks, tokens, num_kv_heads, 1], not yet rounded
};

// Takes blocks [blocks, tokens, num_kv_heads, dim], float32 or float64. Norms are rounded to 4 bits
// over a block's tokens, means over kNsnMeanGroup channels, each with a float16 scale and minimum.
NsnBlocks NormalizeShiftNormalize(const at::Tensor& blocks);

// Returns [256, kNsnWidth] float64 on the host: k-means of normal draws (bits 1) or of their
// magnitudes (bits 2, with signs stored separately). Values of an entry are rounded to 4 bits, like
// the released ones. The paper refines these by gradient descent on cosines; this code does not.
const at::Tensor& NsnCodebook(int bits);

// Replaces rows [..., dim] by the nearest signed entries. `dim`: a multiple of kNsnWidth.
at::Tensor NsnRead(const at::Tensor& rows, int bits);

// Multiplies the scales by |row|^2 / (row read), which makes the error orthogonal to `rows`, and
// rounds them to float16.
at::Tensor NsnScales(const at::Tensor& scales, const at::Tensor& rows, const at::Tensor& read);

}  // namespace oscar
