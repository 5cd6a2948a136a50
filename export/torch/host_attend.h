// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of single queries over a view of a cache on the host, for the few rows of a decode
// step. Everything is in rotated space; sums are float32, in an order independent of the number of
// threads.
#pragma once

#include <cstdint>

#include "export/torch/host_cache.h"

namespace oscar {

// The attention rule of a call: the logits, the tokens that a query sees, and those that it reads
// exactly.
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
  const BFloat16Bits* tail_k = nullptr;  // as in HostRows; without tail_slots the ring is read
  const BFloat16Bits* tail_v = nullptr;
  int64_t tail_slots = 0;
};

// Computes attention of a request's queries, which are its last tokens. The query at position i
// reads exactly all tokens except those that are in pages when the request has i + 1 tokens (with
// exact_chunk: before the call). It reads these as codes. Sinks (t < sink_tokens) are always exact.
void HostAttend(const HostCache& cache, const AttendRule& rule, const HostQueries& queries,
                int num_threads);

// Returns the first token after the sinks that the query at `position` of a request reads exactly.
int64_t QuantizedEnd(const HostCache& cache, const AttendRule& rule, int request, int64_t position);

}  // namespace oscar
