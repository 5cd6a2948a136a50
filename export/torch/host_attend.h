// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of single queries over a view of a cache in host memory, for the few rows of a decode
// step. Queries, cache and outputs are rotated. Sums are float32, in an order that does not depend
// on the number of threads.
#pragma once

#include <cstdint>

#include "export/torch/host_cache.h"

namespace oscar {

// The attention rule of a call: how logits are computed, which tokens a query sees, and which of
// them it reads exactly.
struct AttendRule {
  float scale = 1;           // factor of the logits, natural units
  float softcap = 0;         // logits become softcap * tanh(logits / softcap); 0: no softcap
  int64_t window = 0;        // tokens that a query sees, including its own; 0: all
  bool exact_chunk = false;  // whether a query reads all rows of its own call exactly
};

struct HostQueries {
  const float* q = nullptr;              // [rows, num_q_heads, k.dim], rotated
  float* out = nullptr;                  // [rows, num_q_heads, v.dim], for the view's heads
  int64_t num_q_heads = 1;               // query heads of the layer
  int64_t gqa_ratio = 1;                 // query heads per KV head
  const int64_t* heads = nullptr;        // [num_kv_heads]: the view's KV heads; null: all
  const int32_t* row_begin = nullptr;    // [num_requests + 1]
  const float* sinks = nullptr;          // [num_q_heads] logits without a value; null: none
  const BFloat16Bits* tail_k = nullptr;  // as in HostRows; if tail_slots is 0, the ring is read
  const BFloat16Bits* tail_v = nullptr;
  int64_t tail_slots = 0;
};

// Computes attention of each request's queries, which are its last tokens. The query at position i
// reads as codes the tokens that are in pages when the request has i + 1 tokens (with exact_chunk:
// that were in pages before the call). It reads all other tokens exactly.
void HostAttend(const HostCache& cache, const AttendRule& rule, const HostQueries& queries,
                int num_threads);

// Returns the position of the first token after the sinks that the query at `position` reads
// exactly.
int64_t QuantizedEnd(const HostCache& cache, const AttendRule& rule, int request, int64_t position);

}  // namespace oscar
