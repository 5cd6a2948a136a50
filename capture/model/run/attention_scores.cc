// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/attention_scores.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "capture/model/run/attention.h"
#include "capture/model/run/product.h"

namespace oscar {
namespace {

// Size of the logits computed at a time.
constexpr int64_t kScorePieceBytes = int64_t{64} << 20;

int64_t RowsPerPiece(const AttentionSpec& spec, int64_t num_tokens) {
  return std::max<int64_t>(1, kScorePieceBytes / (4 * spec.num_q_heads * num_tokens));
}

// Returns scaled logits for the queries at `rows` [n] int64, and -inf for keys that a query does
// not see.
// -> [num_q_heads, n, num_keys] float32
at::Tensor MaskedLogits(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& rows, int64_t num_keys) {
  const int64_t n = rows.size(0), head_dim = q.size(2);
  const at::Tensor queries = q.index_select(0, rows)
                                 .to(at::kFloat)
                                 .view({n, spec.num_kv_heads, spec.gqa_ratio(), head_dim})
                                 .permute({1, 2, 0, 3})
                                 .reshape({spec.num_kv_heads, spec.gqa_ratio() * n, head_dim});
  const at::Tensor keys = k.narrow(0, 0, num_keys).to(at::kFloat).permute({1, 2, 0});
  at::Tensor logits =
      BatchProduct(queries, keys).mul_(spec.scale).view({spec.num_q_heads, n, num_keys});
  SoftCap(spec.softcap, logits);
  const at::Tensor row = rows.unsqueeze(1), key = at::arange(num_keys, rows.options()).unsqueeze(0);
  at::Tensor hidden = key.gt(row);
  if (spec.window) hidden.logical_or_(key.le(row.sub(*spec.window)));
  return logits.masked_fill_(hidden, -std::numeric_limits<float>::infinity());
}

// Appends one logit to each row, after its keys.
at::Tensor WithSinks(const AttentionSpec& spec, const at::Tensor& logits, const at::Tensor& given) {
  if (spec.sinks.empty()) return logits;
  const at::Tensor sinks = given.defined() ? given : SinkLogits(spec, logits.device());
  const at::Tensor of_rows =
      sinks.to(at::kFloat).view({-1, 1, 1}).expand({logits.size(0), logits.size(1), 1});
  return at::cat({logits, of_rows}, -1);
}

at::Tensor ToDevice(std::span<const int64_t> rows, at::Device device) {
  at::Tensor host = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  std::copy(rows.begin(), rows.end(), host.mutable_data_ptr<int64_t>());
  return host.to(device);
}

}  // namespace

at::Tensor LogSumExpRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& sinks) {
  const int64_t num_tokens = q.size(0), step = RowsPerPiece(spec, num_tokens);
  at::Tensor result = at::empty({num_tokens, spec.num_q_heads}, q.options().dtype(at::kFloat));
  for (int64_t begin = 0; begin < num_tokens; begin += step) {
    const int64_t end = std::min(begin + step, num_tokens);
    const at::Tensor rows = at::arange(begin, end, q.options().dtype(at::kLong));
    const at::Tensor logits = WithSinks(spec, MaskedLogits(spec, q, k, rows, end), sinks);
    result.narrow(0, begin, end - begin).copy_(at::logsumexp(logits, {-1}).t());
  }
  return result;
}

at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& rows, int64_t num_keys, const at::Tensor& sinks) {
  const at::Tensor logits = WithSinks(spec, MaskedLogits(spec, q, k, rows, num_keys), sinks);
  return at::softmax(logits, -1).narrow(-1, 0, num_keys).permute({1, 0, 2});
}

at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       std::span<const int64_t> rows, const at::Tensor& sinks) {
  const int64_t num_tokens = q.size(0), num_rows = static_cast<int64_t>(rows.size());
  const int64_t step = RowsPerPiece(spec, num_tokens);
  at::Tensor result =
      at::zeros({num_rows, spec.num_q_heads, num_tokens}, q.options().dtype(at::kFloat));
  const at::Tensor on_device = ToDevice(rows, q.device());
  for (int64_t begin = 0; begin < num_rows; begin += step) {
    const int64_t end = std::min(begin + step, num_rows);
    const int64_t num_keys = 1 + *std::max_element(rows.begin() + begin, rows.begin() + end);
    result.narrow(0, begin, end - begin)
        .narrow(2, 0, num_keys)
        .copy_(SoftmaxRows(spec, q, k, on_device.narrow(0, begin, end - begin), num_keys, sinks));
  }
  return result;
}

}  // namespace oscar
