// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The operators' arguments for a view, as tensors of one device, and operations on them for any
// device. The schemas are in operators.cc, the units and the byte layout in host_cache.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "export/torch/host_attend.h"
#include "export/torch/host_cache.h"
#include "linalg/affine_codec.h"  // ScaleFit

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

// Checks the tensors against the format and each other. Throws UsageError naming the tensor.
ViewTensors MakeView(const at::Tensor& pages, const at::Tensor& windows, const at::Tensor& state,
                     const at::Tensor& page_table, const at::Tensor& window_of_request,
                     at::IntArrayRef format, const std::optional<at::Tensor>& heads);

HostCache HostCacheOf(const ViewTensors& view);  // requires tensors on the host

// Keys and values, one tensor each.
struct RowTensors {
  at::Tensor k, v;
};

// Dequantizes tokens [begin, end) of a request on the host: float32 [view heads, tokens,
// dim].
RowTensors StoredRows(const ViewTensors& view, int request, int64_t begin, int64_t end);
// Does what StoredRows does on a device. `type`: Float or BFloat16.
RowTensors StoredRowsOnCuda(const ViewTensors& view, int request, int64_t begin, int64_t end,
                            at::ScalarType type);
// Returns the rows, bf16, of positions [begin, end) in a request's window. The positions must be
// all sinks or all recent.
RowTensors WindowRows(const ViewTensors& view, int request, int64_t begin, int64_t end);

// Returns the rows that the last query of every request reads: float32 [requests, layer_heads,
// max_length, dim]. Rows after a request's end are zero, and so are heads that are not in the view.
RowTensors ReadRows(const ViewTensors& view, int64_t layer_heads, int64_t max_length);

// How keys or values are stored, as in HostSide. Undefined tensors are not used.
struct SideTensors {
  at::Tensor rotation, mean;  // bf16 [view heads or 1, dim, dim], float32 [view heads, dim]
  std::vector<double> clip;
  ScaleFit scales;
  at::Tensor feedback, feedback_units;  // int8 [view heads, dim, dim + 16], float32 [view heads]
};

struct WriteTensors {
  SideTensors sides[2];  // keys, values
  at::Tensor rows[2];    // bf16 [rows, layer heads, dim], contiguous
  at::Tensor row_begin;  // int32 [requests + 1]
  at::Tensor bad_rows;   // int32 [1]
  int64_t max_rows = 0, tail_rows = 0;
};

struct AttendTensors {
  at::Tensor q;          // bf16 [rows, query heads, k.dim]
  at::Tensor out;        // f32 or bf16 [rows, query heads, v.dim]
  at::Tensor row_begin;  // int32 [requests + 1], on any device
  int64_t gqa_ratio = 1;
  at::Tensor sinks;  // f32 [query heads], or undefined
  RowTensors tail;   // bf16 [requests, view heads, slots, dim], or undefined
};

// Throws UsageError unless the view's heads are heads of the layer. Does not check heads in device
// memory, because that would wait for the device.
void CheckHeads(const ViewTensors& view, int64_t layer_heads);
void CheckRowBegin(const ViewTensors& view, const at::Tensor& row_begin);
// Checks the shapes and types of all inputs of attention.
void CheckAttend(const ViewTensors& view, const AttendTensors& attend, int64_t max_rows,
                 int64_t max_length);

void CheckWrite(const ViewTensors& view, const WriteTensors& write);

// Computes attention with host tensors: query by query if a request has few queries, otherwise
// AttendByRows().
void AttendOnHost(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend,
                  int64_t max_rows);
// Computes attention of many queries with tensor operations. Codes that any query of a call reads
// are dequantized once. A mask then gives every query only the codes and the exact rows that it
// reads. Needs the tail if a request has several queries.
void AttendByRows(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend);

// These write keys and values to the view's pages and windows, and return the tails.
// WriteThroughHost is for device tensors in formats that the kernels do not support. It works on
// copies of the changed data and waits for the device.
RowTensors WriteOnHost(const ViewTensors& view, const WriteTensors& write);
RowTensors WriteThroughHost(const ViewTensors& view, const WriteTensors& write);

// These compute tails by tensor operations (page_tensors.cc), for side 0 (keys) or 1 (values).
// RingBefore returns the recent ring before a step, with room for `max_rows` more rows. AddToTail
// puts the step's rotated rows [rows, view heads, dim] there. KeepNewest writes the newest rows of
// a tail back to the ring, even if they are quantized.
at::Tensor RingBefore(const ViewTensors& view, int side, int64_t max_rows);
void AddToTail(const ViewTensors& view, const at::Tensor& row_begin, const at::Tensor& rows,
               const at::Tensor& tail);
void KeepNewest(const ViewTensors& view, int side, const at::Tensor& tail);

#ifdef OSCAR_TORCH_CUDA
// These use the kernels of export/cuda if they support the request (cuda_view.cc).
RowTensors WriteOnCuda(const ViewTensors& view, const WriteTensors& write);
void AttendOnCuda(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend,
                  int64_t max_rows, int64_t max_length);
#endif

}  // namespace oscar
