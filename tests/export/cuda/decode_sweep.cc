// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/cuda/decode_sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "export/cuda/reference/reference_decode.h"

namespace oscar {
namespace {

std::vector<float> RunOnce(const DecodePlan& plan, const DecodeArguments& arguments,
                           const DeviceArray<float>& out, const DeviceArray<uint8_t>& workspace) {
  RunDecode(plan, arguments, workspace.data(), nullptr);
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
  return out.ToHost();
}

}  // namespace

DecodeError MeasureDecode(const DecodeCase& decode_case) {
  const RandomCache cache(decode_case.cache);
  const CacheView& view = cache.view();
  const int q_heads = decode_case.num_q_heads, v_dim = view.format.v.dim;
  const size_t rows = static_cast<size_t>(view.num_requests) * q_heads;
  DeviceArray<__nv_bfloat16> q(rows * view.format.k.dim);
  FillNormal(q.data(), q.size(), 1, decode_case.cache.seed + 1);
  if (const std::vector<float>& scales = decode_case.query_scales; !scales.empty()) {
    std::vector<__nv_bfloat16> values = q.ToHost();
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t head = i / view.format.k.dim % q_heads;
      values[i] = __float2bfloat16(__bfloat162float(values[i]) * scales[head % scales.size()]);
    }
    q = DeviceArray<__nv_bfloat16>(values);
  }
  std::vector<float> sink_logits;
  for (int h = 0; h < q_heads; ++h) sink_logits.push_back(0.5F * static_cast<float>(h) - 1);
  const DeviceArray<float> sinks(sink_logits);
  DeviceArray<float> out(rows * v_dim), lse(rows);
  out.Fill(0xFF);
  lse.Fill(0xFF);

  int sms = 0;
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const DecodePlan plan = PlanDecode(view.format, view.num_kv_heads, q_heads,
                                     decode_case.cache.lengths, WindowSlots(view), sms);
  DeviceArray<uint8_t> workspace(DecodeWorkspaceBytes(plan));
  workspace.Fill(0xFF);
  InitDecodeWorkspace(plan, workspace.data(), nullptr);
  DecodeArguments arguments;
  arguments.cache = view;
  arguments.rule = decode_case.rule;
  arguments.q = q.data();
  arguments.attention_sinks = decode_case.attention_sinks ? sinks.data() : nullptr;
  arguments.out_f32 = out.data();
  arguments.lse = lse.data();
  const std::vector<float> first = RunOnce(plan, arguments, out, workspace);
  const std::vector<float> got = RunOnce(plan, arguments, out, workspace);
  const std::vector<float> got_lse = lse.ToHost();

  const int longest =
      *std::max_element(decode_case.cache.lengths.begin(), decode_case.cache.lengths.end());
  const ReferenceDecode expected =
      DecodeInFloat64(arguments, q_heads, std::max(longest, 1), nullptr);
  DecodeError error;
  for (size_t row = 0; row < rows; ++row) {
    double size = 0;
    if (std::any_of(&got[row * v_dim], &got[row * v_dim] + v_dim,
                    [](float x) { return !std::isfinite(x); }))
      ++error.rows_not_finite;
    for (int d = 0; d < v_dim; ++d) size = std::max(size, expected.spread[row * v_dim + d]);
    for (int d = 0; d < v_dim; ++d) {
      const size_t i = row * v_dim + d;
      if (!std::isfinite(got[i])) error.finite = false;
      if (first[i] != got[i] && std::isfinite(got[i])) error.finite = false;
      const double e = std::abs(got[i] - expected.out[i]) / std::max(size, 1e-30);
      if (!(e <= error.worst)) {
        error.worst = e;
        error.coordinate = fmt::format("request {} query head {} dim {}: {} for {}", row / q_heads,
                                       row % q_heads, d, got[i], expected.out[i]);
      }
    }
    if (std::isinf(expected.lse[row]) && std::isinf(got_lse[row])) continue;
    error.worst_lse = std::max(error.worst_lse, std::abs(got_lse[row] - expected.lse[row]));
    if (std::isnan(got_lse[row])) error.finite = false;
  }
  return error;
}

}  // namespace oscar
