// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/attention_kl/attention_kl_plan.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "export/cuda/attention_kl/attention_kl_launch.h"
#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/tensor_map.h"
#include "linalg/base/error.h"

namespace oscar::kl {
namespace {

constexpr int kChunkStep = 64;          // a multiple of every kernel's keys per tile
constexpr int64_t kEnoughItems = 4096;  // enough for 132 SMs to finish at about the same time
constexpr int64_t kFewestChunkKeys = 2048;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
size_t Align(size_t bytes) { return (bytes + 255) / 256 * 256; }

void CheckShape(const AttentionKlShape& s, const AttentionKlOptions& o) {
  const auto fail = [](const std::string& what) { throw UsageError("attention-KL " + what); };
  if (s.tokens < 1 || s.tokens > (1 << 24) || s.rows < 1 || s.rows > (1 << 24))
    fail(fmt::format("of {} rows over {} tokens; supported: 1 to 16777216 of each", s.rows,
                     s.tokens));
  if (s.num_kv_heads < 1 || s.num_q_heads < 1 || s.num_q_heads % s.num_kv_heads != 0 ||
      s.num_q_heads / s.num_kv_heads > 64 || s.num_q_heads > 65535)
    fail(
        fmt::format("of {} query heads over {} KV heads; supported: 1 to 64 query heads "
                    "per KV head",
                    s.num_q_heads, s.num_kv_heads));
  if (s.head_dim < 8 || s.head_dim > 256 || s.head_dim % 8 != 0)
    fail(fmt::format("of head dim {}; supported: multiples of 8 from 8 to 256", s.head_dim));
  if (o.outputs && (s.v_head_dim < 8 || s.v_head_dim > 512 || s.v_head_dim % 8 != 0))
    fail(fmt::format("outputs of V head dim {}; supported: multiples of 8 from 8 to 512",
                     s.v_head_dim));
  if (!(o.scale > 0) || !std::isfinite(o.scale) || !(o.softcap >= 0) || !std::isfinite(o.softcap))
    fail(
        fmt::format("with scale {} and softcap {}; the scale must be positive, the softcap "
                    "positive or 0 for none",
                    o.scale, o.softcap));
  if (o.window < 0 || o.sink < 0 || o.recent < 0)
    fail(fmt::format("with window {}, {} sink and {} recent tokens; none may be negative", o.window,
                     o.sink, o.recent));
}

}  // namespace

Plan PlanOf(const AttentionKlShape& s, const AttentionKlOptions& o) {
  CheckShape(s, o);
  Plan plan{};
  plan.hopper = !o.portable && HasWgmma();
  plan.tile_rows = plan.hopper ? kHopperTileRows : kPortableTileRows;
  plan.num_vrows = s.rows * (s.num_q_heads / s.num_kv_heads);
  const int64_t tiles = CeilDiv(plan.num_vrows, plan.tile_rows) * s.num_kv_heads;
  // With outputs, keys are not split into chunks: one CTA sums over all keys of a row.
  const int64_t most = o.outputs ? 1 : std::max<int64_t>(1, s.tokens / kFewestChunkKeys);
  const int64_t chunks = std::clamp<int64_t>(CeilDiv(kEnoughItems, tiles), 1, most);
  plan.chunk_keys = CeilDiv(CeilDiv(s.tokens, chunks), kChunkStep) * kChunkStep;
  plan.num_chunks = CeilDiv(s.tokens, plan.chunk_keys);
  plan.items = tiles * plan.num_chunks;
  plan.bytes = Align(static_cast<size_t>(kFields * plan.num_chunks * s.num_q_heads * s.rows) *
                     sizeof(float));
  return plan;
}

void CheckPointers(const AttentionKlOptions& o, const AttentionKlInputs& in,
                   const AttentionKlRows& rows) {
  const auto check = [](const void* pointer, const char* name) {
    if (pointer == nullptr || reinterpret_cast<uintptr_t>(pointer) % 16 != 0)
      throw UsageError(fmt::format(
          "attention-KL: {} must be 16-byte aligned device memory, found {}", name, pointer));
  };
  check(in.q, "q");
  check(in.k, "k");
  check(in.k_hat, "k_hat");
  if (in.q_hat != nullptr) check(in.q_hat, "q_hat");
  if (o.outputs) {
    check(in.v, "v");
    check(in.v_hat, "v_hat");
    check(rows.output, "output");
    check(rows.output_hat, "output_hat");
  } else if (rows.output != nullptr || rows.output_hat != nullptr) {
    throw UsageError("attention-KL: outputs are requested, but options.outputs is off");
  }
  if (rows.logit_sq != nullptr && !o.logit_sq)
    throw UsageError("attention-KL: logit_sq is requested, but options.logit_sq is off");
}

void CheckWorkspace(const Plan& plan, const void* workspace, size_t bytes) {
  if (workspace == nullptr || bytes < plan.bytes)
    throw UsageError(fmt::format("attention-KL: the workspace has {} bytes, but {} are needed",
                                 bytes, plan.bytes));
}

KlParams ParamsOf(const AttentionKlShape& s, const AttentionKlOptions& o,
                  const AttentionKlInputs& in, const AttentionKlRows& rows, const Plan& plan,
                  void* workspace) {
  const auto count = [](int64_t n) { return static_cast<int>(n); };
  const auto within = [&](int64_t n) { return count(std::min(n, s.tokens)); };
  KlParams p{};
  p.q = in.q;
  p.q_hat = in.q_hat == in.q ? nullptr : in.q_hat;
  p.k = in.k;
  p.k_hat = in.k_hat;
  p.v = in.v;
  p.v_hat = in.v_hat;
  p.positions = in.positions;
  p.partial = static_cast<float*>(workspace);
  p.output = rows.output;
  p.output_hat = rows.output_hat;
  p.tokens = count(s.tokens);
  p.num_q_heads = count(s.num_q_heads);
  p.num_kv_heads = count(s.num_kv_heads);
  p.gqa_ratio = count(s.num_q_heads / s.num_kv_heads);
  p.head_dim = count(s.head_dim);
  p.v_head_dim = count(s.v_head_dim);
  p.rows = count(s.rows);
  p.num_vrows = count(plan.num_vrows);
  p.window = within(o.window);
  p.sink = within(o.sink);
  p.recent = within(o.recent);
  p.chunk_keys = count(plan.chunk_keys);
  p.num_chunks = count(plan.num_chunks);
  p.tile_rows = plan.tile_rows;
  p.tile_keys = kChunkStep;
  p.skip_exact = o.skip_exact;
  p.want_logit_sq = o.logit_sq;
  p.scale = static_cast<float>(o.scale);
  p.scale_log2 = static_cast<float>(o.scale / std::numbers::ln2);
  if (o.softcap > 0) {
    p.softcap_in = static_cast<float>(o.scale / o.softcap);
    p.softcap_out = static_cast<float>(o.softcap / o.scale);
  }
  const auto square = [](double x) { return static_cast<float>(x * x); };
  p.near = static_cast<float>(kNearDelta / o.scale);
  p.near_sq = square(kNearDelta / o.scale);
  p.far_sq = square(kFarDelta / o.scale);
  p.plain_sq = square(kPlainDelta / o.scale);
  double power = o.scale * o.scale;
  for (int k = 0; k < kNearTerms; ++k, power *= o.scale)
    p.near_curve[k] = static_cast<float>(kNearCurve[k] * power);
  return p;
}

void CheckSharedBytes(int bytes, const KlParams& params) {
  int device = 0, most = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (bytes > most)
    throw UsageError(
        fmt::format("attention-KL of head dim {}{} needs {} bytes of shared memory, but this GPU "
                    "has {}; use a smaller head dim{}",
                    params.head_dim, params.q_hat != nullptr ? " with q_hat" : "", bytes, most,
                    params.q_hat != nullptr ? " or without q_hat" : ""));
}

}  // namespace oscar::kl
