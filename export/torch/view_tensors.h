// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What operators get of a view, as tensors of one device, and what they do with it on any device.
// The schemas are in operators.cc; the units and the layout of the bytes in host_cache.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "export/torch/host_attend.h"
#include "export/torch/host_cache.h"

namespace oscar {

struct ViewTensors {
  CacheShape shape;
  at::Tensor pages;              // uint8 [num_pages, PageBytes]
  at::Tensor windows;            // bf16 [num_windows, view heads, window_head_values]
  at::Tensor state;              // int32 [4, requests]
  at::Tensor page_table;         // int32 [requests, pages]
  at::Tensor window_of_request;  // int32 [requests]
  at::Tensor heads;              // int64 [view heads]: KV heads of the layer; undefined: all

  int64_t num_kv_heads() const { return windows.size(1); }
  int64_t num_requests() const { return state.size(1); }
};

// Checked against the format and each other. Throws UsageError naming the tensor.
ViewTensors MakeView(const at::Tensor& pages, const at::Tensor& windows, const at::Tensor& state,
                     const at::Tensor& page_table, const at::Tensor& window_of_request,
                     at::IntArrayRef format, const std::optional<at::Tensor>& heads);

HostCache HostCacheOf(const ViewTensors& view);  // of tensors on the host

// Keys and values.
struct RowTensors {
  at::Tensor k, v;
};

// Dequantized rows of quantized tokens [begin, end) of a request: float32 [view heads, tokens,
// dim].
RowTensors StoredRows(const ViewTensors& view, int request, int64_t begin, int64_t end);
#ifdef OSCAR_TORCH_CUDA
RowTensors StoredRowsOnCuda(const ViewTensors& view, int request, int64_t begin, int64_t end);
#endif
// Rows of positions [begin, end) that a request's window holds, all sinks or all recent: bf16.
RowTensors WindowRows(const ViewTensors& view, int request, int64_t begin, int64_t end);

// What the last query of every request reads: float32 [requests, layer_heads, max_length, dim];
// zeros beyond a request's length and for heads that the view has not.
RowTensors ReadRows(const ViewTensors& view, int64_t layer_heads, int64_t max_length);

struct AttendTensors {
  at::Tensor q;                    // bf16 [rows, query heads, k.dim]
  at::Tensor out;                  // f32 or bf16 [rows, query heads, v.dim]
  std::vector<int32_t> row_begin;  // [requests + 1]
  int64_t gqa_ratio = 1;
  at::Tensor sinks;  // f32 [query heads], or undefined
  RowTensors tail;   // bf16 [requests, view heads, slots, dim], or undefined
};

// Throws UsageError unless the view's heads are heads of the layer; one that is on a device is
// trusted to hold those.
void CheckHeads(const ViewTensors& view, int64_t layer_heads);
// The same of shapes and types of everything that attention takes.
void CheckAttend(const ViewTensors& view, const AttendTensors& attend, int64_t max_rows,
                 int64_t max_length);

// Attention of many queries by tensors: codes that some query of a call reads are dequantized once,
// and every query is masked to what it reads of codes and of exact rows. Needs the tail.
void AttendByRows(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend);

}  // namespace oscar
