// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode attention over a mixed-precision cache: one query token per request attends to quantized
// pages and bf16 windows. The work is split over the GPU, and the parts are merged in the same
// launch. Trap: queries, cache and outputs are rotated, and the last token of a request must be in
// its window.
//
//   plan = PlanDecode(...)                   host, once per batch composition
//   workspace of DecodeWorkspaceBytes(plan)  device; InitDecodeWorkspace once
//   RunDecode(...)                           capturable in a graph; lengths are read on the device
//
// A plan serves any lengths up to those it was made for, so a captured graph stays valid while
// sequences grow. A workspace serves one launch at a time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

inline constexpr int kMaxDecodeRequests = 256;
inline constexpr int kMaxGqaRatio = 32;

// The attention rule: softmax of scale * <q, k>, after the softcap, over the last `window` tokens.
struct DecodeRule {
  float scale = 1;    // factor of the logits, natural units; usually 1 / sqrt(k.dim)
  float softcap = 0;  // logits become softcap * tanh(logits / softcap); 0: no softcap
  int window = 0;     // tokens that a query sees, including its own; 0: all
};

struct DecodeArguments {
  CacheView cache;
  DecodeRule rule;
  const __nv_bfloat16* q = nullptr;  // [num_requests, num_q_heads, k.dim], rotated
  // [num_q_heads] logits of attention sinks, which join the softmax without a value; null: none
  const float* attention_sinks = nullptr;
  __nv_bfloat16* out = nullptr;  // [num_requests, num_q_heads, v.dim], rotated; null: not written
  float* out_f32 = nullptr;
  float* lse = nullptr;  // [num_requests, num_q_heads], natural log, or null
  // Programmatic dependent launch: the kernel starts and fetches quantized pages while the previous
  // kernel still runs. The previous kernel may write queries and windows, but not pages, the page
  // table or lengths.
  bool overlap_previous = false;
};

// The launch geometry for a batch.
struct DecodePlan {
  CacheFormat format;
  int num_kv_heads = 0;
  int num_q_heads = 0;
  int heads_per_unit = 0;  // query heads that one CTA serves, at most 8
  int units_per_kv_head = 0;
  std::vector<uint16_t> first_split;  // [num_requests + 1], index of a request's first split
};

// Plans a batch. `max_lengths` [num_requests]: the most tokens that each request may have.
// `num_sms` describes the device, and `window_slots` the cache. Throws UsageError if a format or a
// number is not supported, and says what is.
DecodePlan PlanDecode(const CacheFormat& format, int num_kv_heads, int num_q_heads,
                      const std::vector<int>& max_lengths, int window_slots, int num_sms);

size_t DecodeWorkspaceBytes(const DecodePlan& plan);
void InitDecodeWorkspace(const DecodePlan& plan, void* workspace, cudaStream_t stream);

// Launches the kernel, which leaves `workspace` ready for the next launch. Throws UsageError if the
// arguments do not match the plan.
void RunDecode(const DecodePlan& plan, const DecodeArguments& arguments, void* workspace,
               cudaStream_t stream);

}  // namespace oscar
