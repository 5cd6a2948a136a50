// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode attention over a mixed-precision cache: one query token per request against quantized
// pages and bf16 windows, split over the GPU and combined in the same launch. Trap: everything is
// in rotated space, and the last token of a request is already in its window.
//
//   plan = PlanDecode(...)                   host, once per batch composition
//   workspace of DecodeWorkspaceBytes(plan)  device; InitDecodeWorkspace once
//   RunDecode(...)                           capturable in a graph; lengths are read on the device
//
// A plan serves any lengths up to those it was made for, so a captured graph stays valid while
// sequences grow; a workspace serves one launch at a time.
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

// The attention rule: softmax over scale * q k, with softcap, over the last `window` tokens.
struct DecodeRule {
  float scale = 1;    // factor of the logits, natural units; usually 1 / sqrt(k.dim)
  float softcap = 0;  // logits become softcap * tanh(logits / softcap); 0: no softcap
  int window = 0;     // tokens that a query sees, including its own; 0: all
};

struct DecodeArguments {
  CacheView cache;
  DecodeRule rule;
  const __nv_bfloat16* q = nullptr;  // [num_requests, num_q_heads, k.dim], rotated
  // [num_q_heads], logits of sinks that join the softmax without a value; null: none
  const float* attention_sinks = nullptr;
  __nv_bfloat16* out = nullptr;  // [num_requests, num_q_heads, v.dim], rotated; or lse only
  float* out_f32 = nullptr;
  float* lse = nullptr;  // [num_requests, num_q_heads], natural log, or null
  // Programmatic dependent launch: starts and fetches quantized pages while the previous kernel
  // still runs. That kernel must not write pages, the page table or lengths; it may write queries
  // and windows.
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

// `max_lengths` [num_requests]: upper bounds of the tokens per request. `num_sms` and
// `window_slots` describe the device and the cache. Throws UsageError that says what is not
// supported, and what is.
DecodePlan PlanDecode(const CacheFormat& format, int num_kv_heads, int num_q_heads,
                      const std::vector<int>& max_lengths, int window_slots, int num_sms);

size_t DecodeWorkspaceBytes(const DecodePlan& plan);
void InitDecodeWorkspace(const DecodePlan& plan, void* workspace, cudaStream_t stream);

// Leaves `workspace` ready for the next launch. Throws UsageError if plan and arguments differ.
void RunDecode(const DecodePlan& plan, const DecodeArguments& arguments, void* workspace,
               cudaStream_t stream);

}  // namespace oscar
