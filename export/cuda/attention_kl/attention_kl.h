// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the attention of one layer over one sequence with an exact and with a quantized cache:
// KL(S || S^) and logit errors of every query row and head, and both outputs. It never stores a
// score matrix. Scalar reference: tests/reference/scalar_attention_kl.h.
//
// Trap: keys inside the windows count as exact (s^ = s, v^ = v), whatever k_hat, v_hat and q_hat
// hold there; options.skip_exact ignores those keys. If q_hat is rotated, k_hat must be rotated
// too.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace oscar {

struct AttentionKlShape {
  int64_t tokens = 0;
  int64_t num_q_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0, v_head_dim = 0;  // values per head; v_head_dim is used only with outputs
  int64_t rows = 0;                      // query rows to compare; equal to `tokens` for all
};

struct AttentionKlOptions {
  double scale = 0;    // logit = scale * <q, k>
  double softcap = 0;  // c > 0: logit = c * tanh(scale * <q, k> / c)
  int64_t window = 0;  // keys a query sees, including its own; 0: all up to its own
  // Query i sees key t exactly if t < sink or i - t < recent (CacheWindows).
  int64_t sink = 0, recent = 0;
  bool skip_exact = false;  // ignores those keys; a row without other keys has KL 0, LSE -inf
  bool outputs = false;     // also computes P V and P^ V^: about three times the work
  bool logit_sq = false;    // also sums the squares of the logits
  bool portable = false;    // uses the code for GPUs without wgmma on any GPU
};

// Row-major bf16 arrays on the device, 16-byte aligned.
struct AttentionKlInputs {
  const __nv_bfloat16* q = nullptr;      // [tokens, num_q_heads, head_dim]
  const __nv_bfloat16* q_hat = nullptr;  // like q; nullptr: same as q
  const __nv_bfloat16* k = nullptr;      // [tokens, num_kv_heads, head_dim]
  const __nv_bfloat16* k_hat = nullptr;  // like k: the rows that a reader of the cache gets
  const __nv_bfloat16* v = nullptr;      // [tokens, num_kv_heads, v_head_dim]
  const __nv_bfloat16* v_hat = nullptr;  // like v
  // [rows] positions of the query rows, ascending; nullptr: 0, 1, ... A row that is out of order or
  // out of range gets NaN.
  const int64_t* positions = nullptr;
};

// Results per query row and head, [num_q_heads, rows] on the device. Null pointers are skipped.
struct AttentionKlRows {
  float* kl = nullptr;              // nats
  float* logit_error_sq = nullptr;  // sum over visible keys of (logit^ - logit)^2
  float* logit_sq = nullptr;        // sum over visible keys of logit^2, with options.logit_sq
  float* lse = nullptr;             // log sum exp of the logits
  float* lse_hat = nullptr;         // log sum exp of the quantized logits
  // Outputs [num_q_heads, rows, v_head_dim], with options.outputs:
  float* output = nullptr;      // P V
  float* output_hat = nullptr;  // P^ V^
};

// Returns the bytes of device memory that AttentionKl() needs, 256-byte aligned.
size_t AttentionKlWorkspace(const AttentionKlShape& shape, const AttentionKlOptions& options);

// Fills the arrays of `rows`. Repeated runs give the same bits. A row that sees NaN or Inf in an
// operand gets NaN. Throws UsageError for arguments that are not supported.
void AttentionKl(const AttentionKlShape& shape, const AttentionKlOptions& options,
                 const AttentionKlInputs& inputs, const AttentionKlRows& rows, void* workspace,
                 size_t workspace_bytes, cudaStream_t stream);

}  // namespace oscar
