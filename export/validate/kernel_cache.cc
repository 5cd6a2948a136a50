// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/kernel_cache.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "export/cuda/decode/decode_attention.h"
#include "export/cuda/device/cuda_check.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kFlushTokens = 8;  // tokens that go into pages at once
constexpr int kPoison = 0xFF;        // byte; NaN as bf16 and as float32

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

__nv_bfloat16* Bf16(const at::Tensor& tensor) {
  OSCAR_CHECK(tensor.scalar_type() == at::kBFloat16 && tensor.is_contiguous());
  return static_cast<__nv_bfloat16*>(tensor.data_ptr());
}
int32_t* Int32(const at::Tensor& tensor) { return tensor.data_ptr<int32_t>(); }

// Runs `launch` twice and returns the time of the second run, because the first one also loads
// code.
double MicrosecondsOf(cudaStream_t stream, const std::function<void()>& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  OSCAR_CUDA_CHECK(cudaEventCreate(&begin));
  OSCAR_CUDA_CHECK(cudaEventCreate(&end));
  launch();
  OSCAR_CUDA_CHECK(cudaEventRecord(begin, stream));
  launch();
  OSCAR_CUDA_CHECK(cudaEventRecord(end, stream));
  OSCAR_CUDA_CHECK(cudaEventSynchronize(end));
  float ms = 0;
  OSCAR_CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1000.0 * ms;
}

at::Tensor Int32Tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device, at::kInt);
}

}  // namespace

int64_t QuantizedTokens(int64_t length, const CacheWindows& windows) {
  const int64_t beyond = length - windows.sink - windows.recent;
  return beyond <= 0 ? 0 : beyond / kFlushTokens * kFlushTokens;
}

KernelCache::KernelCache(const AttentionSpec& spec, const CacheFormat& format,
                         const CacheWindows& windows, const KernelRotations& rotations,
                         const at::Tensor& k, const at::Tensor& v,
                         const std::vector<int64_t>& lengths)
    : spec_(spec), format_(format), windows_(windows), rotations_(rotations), lengths_(lengths) {
  const auto num_states = static_cast<int64_t>(lengths.size());
  OSCAR_CHECK_EQ(lengths.back(), k.size(0));
  const at::Device device = k.device();
  const auto bytes = at::TensorOptions().dtype(at::kByte).device(device);
  const int kv_heads = static_cast<int>(spec.num_kv_heads);
  const int64_t num_pages = std::max<int64_t>(
      RoundUp(QuantizedTokens(lengths.back(), windows), format.page_tokens) / format.page_tokens,
      1);
  page_table_stride_ = num_pages;
  pages_ = at::full({num_pages * PageBytes(format, kv_heads)}, kPoison, bytes);
  page_table_ = at::arange(num_pages, bytes.dtype(at::kInt)).repeat({num_states, 1});
  state_lengths_ = Int32Tensor(lengths, device);
  std::vector<int64_t> quantized;
  for (const int64_t length : lengths) quantized.push_back(QuantizedTokens(length, windows));
  quantized_ = Int32Tensor(quantized, device);
  window_ = at::arange(num_states, bytes.dtype(at::kInt));
  const CacheView sizes = View(0, 1);
  windows_memory_ = at::full({num_states * WindowBytes(sizes)}, kPoison, bytes);
  rotated_k_ = at::full_like(k, std::numeric_limits<double>::quiet_NaN());
  rotated_v_ = at::full_like(v, std::numeric_limits<double>::quiet_NaN());
  CheckCacheView(View(0, lengths.size()));

  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
  const at::Tensor bad_rows = at::zeros({1}, bytes.dtype(at::kInt));
  WriteOptions options;
  options.k = {Bf16(rotations.k), rotations.k.size(0) > 1, rotations.k_clip};
  options.v = {Bf16(rotations.v), rotations.v.size(0) > 1, rotations.v_clip};
  options.bad_rows = reinterpret_cast<uint32_t*>(Int32(bad_rows));
  for (size_t state = 0; state < lengths.size(); ++state) {
    const at::Tensor row_begin = Int32Tensor({0, lengths[state]}, device);
    const PrefillTokens tokens{Bf16(k), Bf16(v), static_cast<int>(lengths[state]), Int32(row_begin),
                               nullptr};
    const bool whole = state + 1 == lengths.size();
    if (whole) {
      options.rotated_k = Bf16(rotated_k_);
      options.rotated_v = Bf16(rotated_v_);
    }
    WritePrefill(View(state, 1), options, tokens, stream);
    if (!whole) continue;
    options.rotated_k = options.rotated_v = nullptr;
    write_us_ =
        MicrosecondsOf(stream, [&] { WritePrefill(View(state, 1), options, tokens, stream); });
  }
  if (const int64_t bad = bad_rows.item<int64_t>(); bad > 0) {
    throw NumericalError(fmt::format(
        "{} rows of keys or values cannot be quantized: NaN, infinite, or beyond 1e30", bad));
  }
}

CacheView KernelCache::View(size_t first, size_t count) const {
  CacheView view;
  view.format = format_;
  view.num_kv_heads = static_cast<int>(spec_.num_kv_heads);
  view.num_requests = static_cast<int>(count);
  view.sink_tokens = static_cast<int>(windows_.sink);
  view.recent_slots = static_cast<int>(RoundUp(windows_.recent + kFlushTokens, kTileTokens));
  const auto offset = static_cast<int64_t>(first);
  view.pages = pages_.data_ptr<uint8_t>();
  view.page_table = Int32(page_table_) + offset * page_table_stride_;
  view.page_table_stride = static_cast<int>(page_table_stride_);
  view.lengths = Int32(state_lengths_) + offset;
  view.quantized = Int32(quantized_) + offset;
  view.window_of_request = Int32(window_) + offset;
  if (windows_memory_.defined())
    view.windows = reinterpret_cast<__nv_bfloat16*>(windows_memory_.data_ptr<uint8_t>());
  return view;
}

KernelCache::Decoded KernelCache::Decode(const at::Tensor& q, const at::Tensor& sinks) const {
  const auto num_states = static_cast<int64_t>(lengths_.size());
  OSCAR_CHECK_EQ(q.size(0), num_states);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(q.device().index()).stream();
  Decoded decoded;
  decoded.q = at::empty_like(q);
  RotateArguments rotate;
  rotate.x = Bf16(q);
  rotate.y = Bf16(decoded.q);
  rotate.num_rows = num_states;
  rotate.num_heads = static_cast<int>(spec_.num_q_heads);
  rotate.dim = static_cast<int>(spec_.head_dim);
  rotate.rotation = Bf16(rotations_.k);
  rotate.num_matrices = static_cast<int>(rotations_.k.size(0));
  RotateRows(rotate, stream);

  DecodeArguments arguments;
  arguments.cache = View(0, lengths_.size());
  arguments.rule.scale = static_cast<float>(spec_.scale);
  arguments.rule.softcap = static_cast<float>(spec_.softcap);
  arguments.rule.window = static_cast<int>(spec_.window.value_or(0));
  arguments.q = Bf16(decoded.q);
  if (sinks.defined()) {
    OSCAR_CHECK(sinks.is_contiguous() && sinks.numel() == spec_.num_q_heads);
    arguments.attention_sinks = sinks.const_data_ptr<float>();
  }
  decoded.out = at::full({num_states, spec_.num_q_heads, spec_.v_head_dim},
                         std::numeric_limits<double>::quiet_NaN(), q.options().dtype(at::kFloat));
  arguments.out_f32 = decoded.out.data_ptr<float>();
  int num_sms = 0;
  OSCAR_CUDA_CHECK(
      cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, q.device().index()));
  const DecodePlan plan = PlanDecode(
      format_, arguments.cache.num_kv_heads, static_cast<int>(spec_.num_q_heads),
      std::vector<int>(lengths_.begin(), lengths_.end()), WindowSlots(arguments.cache), num_sms);
  const at::Tensor workspace =
      at::full({static_cast<int64_t>(std::max<size_t>(DecodeWorkspaceBytes(plan), 1))}, kPoison,
               q.options().dtype(at::kByte));
  InitDecodeWorkspace(plan, workspace.data_ptr(), stream);
  decoded.us =
      MicrosecondsOf(stream, [&] { RunDecode(plan, arguments, workspace.data_ptr(), stream); });
  return decoded;
}

}  // namespace oscar
