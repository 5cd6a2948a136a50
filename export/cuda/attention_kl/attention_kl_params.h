// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the attention-KL kernels, and the partial sums that they produce for the merge. A
// virtual row is a pair of a query row and a query head of one KV head. Heads vary fastest, so that
// a tile of virtual rows shares its keys for any GQA ratio.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace oscar::kl {

// Number of virtual rows per CTA.
constexpr int kHopperTileRows = 128, kPortableTileRows = 64;

// Limits of |delta| that decide how a warp sums a tile, of which a thread has 16 or 8 keys per row:
// - Plain: in every thread the root mean square is at least 0.1 and no |delta| can exceed 40. Then
//   e^delta - 1 - delta can be computed as a difference without losing digits.
// - Near: no |delta| can exceed 2. A polynomial gives e^x - 1 - x = x^2 * sum(c_k x^k) (weighted
//   minimax fit, relative error 9.7e-8).
// - Far: all other tiles. Keys with |delta| above 2 are summed relative to their own maximum.
constexpr double kPlainDelta = 0.1, kNearDelta = 2, kFarDelta = 40;
constexpr int kNearTerms = 9;
constexpr double kNearCurve[kNearTerms] = {
    0.4999999765660917,     0.16666646606618926,   0.04166684553917814,
    0.008334049424050064,   0.0013886975290996037, 0.00019774108639905547,
    2.4847947025898386e-05, 2.984318693105695e-06, 2.8162336807381404e-07};
// Partial sums of a virtual row over a chunk of keys. Here e = 2^(scaled s - max), d = s^ - s in
// units of q·k and delta = scale * d. Far keys are those with |delta| above 2 in a far tile, where
// e^delta might overflow. They are summed relative to a maximum of s^.
enum KlField {
  kMax,       // running maximum of s, log2 units
  kSum,       // sum of e
  kSumDelta,  // sum of e d
  kSumCurve,  // sum of e (e^delta - 1 - delta), without far keys
  kErrorSq,   // sum of d^2
  kLogitSq,   // sum of s^2, units of q·k
  kSumNear,   // sum of e e^delta, without far keys
  kSumFar,    // sum of e (1 + delta) over far keys
  kMaxHat,    // running maximum of s^ over tiles that have far keys, log2 units
  kSumHat,    // sum of 2^(scaled s^ - max^) over far keys
  kFields
};

struct KlParams {
  const __nv_bfloat16* q;      // [tokens, num_q_heads, head_dim]
  const __nv_bfloat16* q_hat;  // like q, or null
  const __nv_bfloat16* k;      // [tokens, num_kv_heads, head_dim]; k_hat has the same shape
  const __nv_bfloat16* k_hat;
  const __nv_bfloat16* v;  // [tokens, num_kv_heads, v_head_dim], like v_hat; null without outputs
  const __nv_bfloat16* v_hat;
  const int64_t* positions;    // [rows] or null
  float* partial;              // [kFields, num_chunks, num_q_heads, rows]
  float *output, *output_hat;  // [num_q_heads, rows, v_head_dim], null without outputs
  int tokens, num_q_heads, num_kv_heads, gqa_ratio, head_dim, v_head_dim;
  int rows, num_vrows;         // num_vrows = rows * gqa_ratio
  int window, sink, recent;    // tokens; window 0: none
  int chunk_keys, num_chunks;  // keys per chunk, a multiple of 64
  int tile_rows, tile_keys;    // tile sizes of the selected kernel
  bool skip_exact, want_logit_sq;
  float scale, scale_log2;        // scale_log2 = scale * log2(e)
  float softcap_in, softcap_out;  // s = softcap_out * tanh(softcap_in * q·k); softcap_in 0: none
  // The limits of |delta| in units of q·k, or their squares, and the coefficients of the polynomial
  // in d.
  float near, near_sq, plain_sq, far_sq;
  float near_curve[kNearTerms];
};

}  // namespace oscar::kl
