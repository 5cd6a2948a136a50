// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The operators on a GPU, which use the kernels of export/cuda. For formats that the kernels do not
// support (other quantization groups, steps other than 8), they use tensor operations and write
// through the host. Trap: streams come from LibTorch, but the CUDA runtime is our own copy.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <span>

#include "export/cuda/cache/read_pages.h"
#include "export/cuda/decode/decode_attention.h"
#include "export/cuda/device/cuda_check.h"
#include "export/cuda/write/write_cache.h"
#include "export/torch/view_tensors.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

cudaStream_t StreamOf(const at::Tensor& tensor) {
  const c10::impl::VirtualGuardImpl device(c10::DeviceType::CUDA);
  return static_cast<cudaStream_t>(device.getStream(tensor.device()).native_handle());
}

template <typename T>
T* Data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}

CacheView KernelView(const ViewTensors& view, const at::Tensor& lengths,
                     const at::Tensor& quantized) {
  return {.format = view.shape.format,
          .num_kv_heads = static_cast<int>(view.num_kv_heads()),
          .num_requests = static_cast<int>(view.num_requests()),
          .pages = Data<uint8_t>(view.pages),
          .page_table = Data<int32_t>(view.page_table),
          .page_table_stride = static_cast<int>(view.page_table.size(1)),
          .lengths = Data<int32_t>(lengths),
          .quantized = Data<int32_t>(quantized),
          .windows = Data<__nv_bfloat16>(view.windows),
          .window_of_request = Data<int32_t>(view.window_of_request),
          .sink_tokens = view.shape.sink_tokens,
          .recent_slots = view.shape.recent_slots};
}

WriteSide KernelSide(const SideTensors& side) {
  return {
      .rotation = Data<__nv_bfloat16>(side.rotation),
      .per_head = side.rotation.defined() && side.rotation.size(0) > 1,
      .clip_ratio = side.clip.empty() ? 0 : side.clip[0],
      .head_clip_ratios = side.clip.size() > 1 ? std::span(side.clip) : std::span<const double>(),
      .scales = side.scales,
      .feedback = Data<int8_t>(side.feedback),
      .feedback_units = Data<float>(side.feedback_units)};
}

// Returns the rows of keys or values for the view's heads, minus their means.
at::Tensor RowsOfView(const ViewTensors& view, const SideTensors& side, const at::Tensor& rows) {
  const at::Tensor own = view.heads.defined() ? rows.index_select(1, view.heads) : rows;
  return side.mean.defined() ? own.to(at::kFloat).sub(side.mean).to(at::kBFloat16) : own;
}

bool KernelsKnow(const CacheShape& shape) { return IsValid(shape.format) && shape.step == 8; }

}  // namespace

RowTensors StoredRowsOnCuda(const ViewTensors& view, int request, int64_t begin, int64_t end,
                            at::ScalarType type) {
  const c10::DeviceGuard guard(view.pages.device());
  const auto empty = [&](int64_t dim) {
    return at::empty({view.num_kv_heads(), end - begin, dim}, view.windows.options().dtype(type));
  };
  const RowTensors rows{empty(view.shape.format.k.dim), empty(view.shape.format.v.dim)};
  const CacheView cache = KernelView(view, view.state[0], view.state[1]);
  const auto read = [&]<typename T>(T* k, T* v) {
    ReadPages(cache, request, begin, end - begin, k, v, StreamOf(view.pages));
  };
  if (type == at::kFloat) {
    read(Data<float>(rows.k), Data<float>(rows.v));
  } else {
    read(Data<__nv_bfloat16>(rows.k), Data<__nv_bfloat16>(rows.v));
  }
  return rows;
}

RowTensors WriteOnCuda(const ViewTensors& view, const WriteTensors& write) {
  const c10::DeviceGuard guard(view.pages.device());
  if (!KernelsKnow(view.shape)) return WriteThroughHost(view, write);
  const bool one_each =
      write.max_rows == 1 && write.tail_rows == 0 && write.rows[0].size(0) == view.num_requests();
  const cudaStream_t stream = StreamOf(view.pages);
  const at::Tensor k = RowsOfView(view, write.sides[0], write.rows[0]),
                   v = RowsOfView(view, write.sides[1], write.rows[1]);
  WriteOptions options{.k = KernelSide(write.sides[0]),
                       .v = KernelSide(write.sides[1]),
                       .bad_rows = reinterpret_cast<uint32_t*>(Data<int32_t>(write.bad_rows))};
  const auto empty = [&](int side) {
    const int64_t dim = side == 0 ? view.shape.format.k.dim : view.shape.format.v.dim;
    return at::empty({view.num_requests(), view.num_kv_heads(), 0, dim}, view.windows.options());
  };
  if (one_each) {
    const CacheView cache = KernelView(view, view.state[0], view.state[1]);
    AppendTokens(cache, options, Data<__nv_bfloat16>(k), Data<__nv_bfloat16>(v), stream);
    FlushWindows(cache, options, Data<int32_t>(view.state[3]), view.shape.recent_slots, stream);
    return {empty(0), empty(1)};
  }
  const at::Tensor tails[] = {RingBefore(view, 0, write.max_rows),
                              RingBefore(view, 1, write.max_rows)};
  const at::Tensor rotated[] = {at::empty_like(k), at::empty_like(v)};
  options.rotated_k = Data<__nv_bfloat16>(rotated[0]);
  options.rotated_v = Data<__nv_bfloat16>(rotated[1]);
  // Before new tokens take their slots, moves ring tokens that are now quantized into pages.
  const at::Tensor moved =
      at::minimum(view.state[1], view.state[2].sub(view.shape.sink_tokens).clamp_min_(0))
          .contiguous();
  FlushWindows(KernelView(view, view.state[2], moved), options, Data<int32_t>(view.state[3]),
               view.shape.recent_slots, stream);
  WritePrefill(KernelView(view, view.state[0], view.state[1]), options,
               {.k = Data<__nv_bfloat16>(k),
                .v = Data<__nv_bfloat16>(v),
                .num_tokens = static_cast<int>(k.size(0)),
                .row_begin = Data<int32_t>(write.row_begin),
                .position_begin = Data<int32_t>(view.state[2])},
               stream);
  for (int side = 0; side < 2; ++side) {
    AddToTail(view, write.row_begin, rotated[side], tails[side]);
    KeepNewest(view, side, tails[side]);
  }
  if (write.tail_rows == 0) return {empty(0), empty(1)};
  return {tails[0], tails[1]};
}

void AttendOnCuda(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend,
                  int64_t max_rows, int64_t max_length) {
  const c10::DeviceGuard guard(view.pages.device());
  const int64_t requests = view.num_requests(), heads = view.num_kv_heads(), gqa = attend.gqa_ratio;
  const bool one_each = max_rows == 1 && attend.q.size(0) == requests;
  if (!one_each || !KernelsKnow(view.shape)) return AttendByRows(view, rule, attend);
  int device = 0, num_sms = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device));
  DecodePlan plan;
  try {
    plan = PlanDecode(view.shape.format, static_cast<int>(heads), static_cast<int>(heads * gqa),
                      std::vector<int>(static_cast<size_t>(requests), static_cast<int>(max_length)),
                      view.shape.window_slots(), num_sms);
  } catch (const UsageError&) {  // no instance supports the head dims or the batch
    return AttendByRows(view, rule, attend);
  }
  const auto own = [&](const at::Tensor& t, int64_t dim) {
    if (!view.heads.defined() || !t.defined()) return t;
    return t.unflatten(dim, {-1, gqa}).index_select(dim, view.heads).flatten(dim, dim + 1);
  };
  const at::Tensor q = own(attend.q, 1), sinks = own(attend.sinks, 0);
  const bool direct = !view.heads.defined() && attend.out.is_contiguous();
  const at::Tensor out =
      direct ? attend.out
             : at::empty({requests, heads * gqa, attend.out.size(2)}, attend.out.options());
  const cudaStream_t stream = StreamOf(view.pages);
  const at::Tensor workspace =
      at::empty({static_cast<int64_t>(DecodeWorkspaceBytes(plan))}, view.pages.options());
  InitDecodeWorkspace(plan, workspace.mutable_data_ptr(), stream);
  const bool wide = out.scalar_type() == at::kFloat;
  RunDecode(plan,
            {.cache = KernelView(view, view.state[0], view.state[rule.exact_chunk ? 3 : 1]),
             .rule = {rule.scale, rule.softcap, static_cast<int>(rule.window)},
             .q = Data<__nv_bfloat16>(q),
             .attention_sinks = Data<float>(sinks),
             .out = wide ? nullptr : Data<__nv_bfloat16>(out),
             .out_f32 = wide ? Data<float>(out) : nullptr},
            workspace.mutable_data_ptr(), stream);
  if (direct) return;
  if (view.heads.defined()) {
    attend.out.unflatten(1, {-1, gqa}).index_copy_(1, view.heads, out.unflatten(1, {-1, gqa}));
  } else {
    attend.out.copy_(out);
  }
}

}  // namespace oscar
