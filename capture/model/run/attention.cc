// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/attention.h"

#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "capture/model/run/elementwise.h"
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Returns [end - begin, end - first_key] bool, true if query begin + i sees key first_key + j.
at::Tensor Visible(int64_t begin, int64_t end, int64_t first_key, int64_t window,
                   at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor queries = at::arange(begin, end, options).unsqueeze(1);
  const at::Tensor keys = at::arange(first_key, end, options).unsqueeze(0);
  return keys.le(queries).logical_and_(keys.gt(queries.sub(window)));
}

constexpr int64_t kPieceBytes = int64_t{64} << 20;  // size of the logits

// Computes attention in pieces. `queries` and `result` [num_kv_heads, gqa_ratio, T, ..].
void InPieces(const AttentionSpec& spec, const at::Tensor& queries, const at::Tensor& k,
              const at::Tensor& v, int64_t window, int64_t query_chunk, const at::Tensor& sinks,
              const at::Tensor& result) {
  const int64_t num_tokens = k.size(0);
  const int64_t row_bytes = 4 * spec.num_q_heads * std::min(num_tokens, window + query_chunk);
  const int64_t step = std::clamp(kPieceBytes / row_bytes, int64_t{1}, query_chunk);
  for (int64_t begin = 0; begin < num_tokens; begin += step) {
    const int64_t end = std::min(begin + step, num_tokens);
    const int64_t first_key = std::max<int64_t>(0, begin - window + 1);
    result.slice(2, begin, end)
        .copy_(ExplicitAttention(spec, queries.slice(2, begin, end), k.slice(0, first_key, end),
                                 v.slice(0, first_key, end),
                                 Visible(begin, end, first_key, window, k.device()), sinks));
  }
}

}  // namespace

// Counts keys and values in float32, and four tensors of the size of one piece's logits: logits,
// logits with sinks, weights and their contiguous copy.
int64_t ExplicitAttentionBytes(const AttentionSpec& spec, int64_t num_tokens) {
  const int64_t row = 4 * spec.num_q_heads * num_tokens;
  const int64_t piece = std::min(std::max(kPieceBytes, row), row * num_tokens);
  return 4 * piece + 4 * num_tokens * spec.num_kv_heads * (spec.head_dim + spec.v_head_dim);
}

at::Tensor ExplicitAttention(const AttentionSpec& spec, const at::Tensor& queries,
                             const at::Tensor& k, const at::Tensor& v, const at::Tensor& visible,
                             const at::Tensor& sinks) {
  const int64_t kv_heads = spec.num_kv_heads, ratio = spec.gqa_ratio();
  const int64_t n = queries.size(2), keys = k.size(0);
  at::Tensor logits =
      BatchProduct(queries.to(at::kFloat).reshape({kv_heads, ratio * n, queries.size(3)}),
                   k.permute({1, 2, 0}).to(at::kFloat))
          .mul_(spec.scale)
          .view({kv_heads, ratio, n, keys});
  SoftCap(spec.softcap, logits);
  logits.masked_fill_(visible.logical_not(), -std::numeric_limits<float>::infinity());
  if (sinks.defined()) {
    const at::Tensor of_rows =
        sinks.to(at::kFloat).view({kv_heads, ratio, 1, 1}).expand({kv_heads, ratio, n, 1});
    logits = at::cat({logits, of_rows}, -1);
  }
  const at::Tensor weights =
      at::softmax(logits, -1).narrow(-1, 0, keys).reshape({kv_heads, ratio * n, keys});
  return BatchProduct(weights, v.permute({1, 0, 2}).to(at::kFloat))
      .view({kv_heads, ratio, n, v.size(2)});
}

bool NeedsExplicitAttention(const AttentionSpec& spec) {
  return spec.softcap != 0 || !spec.sinks.empty();
}

bool TakesFlash(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                const at::Tensor& v) {
  if (q.is_cpu() || NeedsExplicitAttention(spec)) return false;
  if (q.size(2) != v.size(2) || q.size(2) % 8 != 0) return false;  // needs padding first
  const int64_t choice =
      at::_fused_sdp_choice(HeadsFirst(q, spec), HeadsFirst(k, spec), HeadsFirst(v, spec), {}, 0.0,
                            /*is_causal=*/true, spec.scale);
  return choice == static_cast<int64_t>(at::SDPBackend::flash_attention);
}

at::Tensor SinkLogits(const AttentionSpec& spec, at::Device device) {
  if (spec.sinks.empty()) return {};
  OSCAR_CHECK_EQ(static_cast<int64_t>(spec.sink_logits.size()), spec.num_q_heads);
  at::Tensor host = at::empty({spec.num_q_heads}, at::kFloat);
  std::ranges::copy(spec.sink_logits, host.mutable_data_ptr<float>());
  return host.to(device);
}

void SoftCap(double c, at::Tensor& logits) {
  if (c == 0) return;
  if (logits.requires_grad()) {
    logits = logits.div(c).tanh().mul(c);  // not in place, because the gradient needs tanh's result
  } else {
    logits.div_(c);
    ElementwiseInPlace(logits, [](at::Tensor& x) { x.tanh_(); });
    logits.mul_(c);
  }
}

at::Tensor FusedAttention(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, const at::Tensor& visible, double scale) {
  const int64_t missing = keys.size(-1) - values.size(-1);
  // All query heads of a KV head share one row of values, so it is padded once, not per query head.
  const at::Tensor whole =
      missing > 0 && keys.is_cpu()
          ? at::constant_pad_nd(values.narrow(1, 0, 1), {0, missing}).expand_as(keys)
          : values;
  return at::scaled_dot_product_attention(
             queries, keys, whole, visible.defined() ? std::optional(visible) : std::nullopt, 0.0,
             /*is_causal=*/!visible.defined(), scale)
      .narrow(-1, 0, values.size(-1));
}

at::Tensor HeadsFirst(const at::Tensor& x, const AttentionSpec& spec) {
  return x.view({x.size(0), spec.num_kv_heads, -1, x.size(2)})
      .permute({1, 2, 0, 3})
      .expand({-1, spec.gqa_ratio(), -1, -1});
}

void CausalAttention(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const AttentionChunking& chunking, at::Tensor& out,
                     const at::Tensor& sinks) {
  const int64_t num_tokens = q.size(0);
  const int64_t window = std::min(spec.window.value_or(num_tokens), num_tokens);
  const at::Tensor queries = HeadsFirst(q, spec), keys = HeadsFirst(k, spec),
                   values = HeadsFirst(v, spec);
  const at::Tensor result = HeadsFirst(out, spec);
  if (NeedsExplicitAttention(spec)) {
    InPieces(spec, queries, k, v, window, chunking.query_chunk,
             sinks.defined() ? sinks : SinkLogits(spec, q.device()), result);
    return;
  }
  if (window == num_tokens &&
      (num_tokens <= chunking.whole_attention || TakesFlash(spec, q, k, v))) {
    result.copy_(FusedAttention(queries, keys, values, {}, spec.scale));
    return;
  }
  for (int64_t begin = 0; begin < num_tokens; begin += chunking.query_chunk) {
    const int64_t end = std::min(begin + chunking.query_chunk, num_tokens);
    const int64_t first_key = std::max<int64_t>(0, begin - window + 1);
    const at::Tensor mask = Visible(begin, end, first_key, window, q.device());
    result.slice(2, begin, end)
        .copy_(FusedAttention(queries.slice(2, begin, end), keys.slice(2, first_key, end),
                              values.slice(2, first_key, end), mask, spec.scale));
  }
}

}  // namespace oscar
