// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/streamed_comparison.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <vector>

#include "capture/model/run/attention.h"  // SoftCap, SinkLogits
#include "export/cuda/attention_kl/attention_kl.h"
#include "export/cuda/device/cuda_check.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int64_t kMostHeadDim = 256 / 2, kMostValueDim = 512 / 3;  // limits of the kernel
// The rows whose exact keys are compared together, and the bytes of kernel outputs at a time.
constexpr int64_t kBlockRows = 512, kOutputBytes = int64_t{256} << 20;

// Whether the kernel's shared memory suffices. Consumer GPUs have too little for head_dim above 64.
bool HasRoom(at::Device device, int64_t head_dim) {
  if (head_dim <= 64) return true;
  int bytes = 0;
  OSCAR_CUDA_CHECK(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index()));
  return bytes >= 160 << 10;
}

at::Tensor Bf16(const at::Tensor& x) { return x.to(at::kBFloat16); }

const __nv_bfloat16* Data(const at::Tensor& x) {
  return static_cast<const __nv_bfloat16*>(x.const_data_ptr());
}

at::Tensor Twice(const at::Tensor& x) { return at::cat({x, x}, -1); }

// Splits values into two bf16 numbers each, [high | low]. Their sum is x with a relative error of
// at most 2^-17.
at::Tensor InTwoParts(const at::Tensor& x) {
  const at::Tensor high = Bf16(x);
  return at::cat({high, Bf16(x - high)}, -1);
}

enum Result { kKl, kOutputErrorSq, kKTermSq, kVTermSq, kLogitErrorSq, kOutputSq, kLogitSq };

}  // namespace

// The results of some rows for a part of the keys.
struct StreamedComparison::Part {
  enum Field { kKl, kLogitErrorSq, kLogitSq, kLse, kLseOther, kFields };  // lse without keys: -inf
  at::Tensor rows;    // [kFields, num_kv_heads, gqa_ratio, rows]
  at::Tensor output;  // [num_kv_heads, gqa_ratio, rows, dim]: P V
  at::Tensor other;   // P^ V
  at::Tensor shift;   // P^ (V^ - V)

  Part Rows(int64_t begin, int64_t end) const {
    const auto of = [&](const at::Tensor& x) { return x.slice(2, begin, end); };
    return {rows.slice(3, begin, end), of(output), of(other), of(shift)};
  }
};

// The tokens that any row may read exactly: the first `sink` tokens, and the last `recent` tokens
// up to the row.
struct StreamedComparison::Reach {
  int64_t sink = 0, recent = 0;

  Reach(const ExactSides& exact, int64_t tokens) {
    for (const ExactTokens* side : {&exact.k, &exact.v}) {
      sink = std::max(sink, std::min(side->sink, tokens));
      if (!side->quantized_end) continue;
      for (int64_t length = 1; length <= tokens; ++length)
        recent = std::max(recent, length - side->quantized_end(length));
    }
  }
  bool any() const { return sink > 0 || recent > 0; }
};

// The kernel's inputs for the compared cache. One bf16 number per value would be too coarse, so a
// value is the sum of two, and rows are wider than the heads. Keys are [high | low], and [q | q]
// times such a key is q times the sum. Values are [v | high | low], where high + low = v^ - v.
struct StreamedComparison::Operands {
  at::Tensor q, k, v;  // undefined `q`: the reference's
};

bool StreamedComparison::Takes(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v) {
  const auto fits = [](const at::Tensor& x, int64_t most) {
    return x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.size(2) <= most &&
           x.size(2) % 8 == 0;
  };
  return !spec.latent && spec.gqa_ratio() <= 64 && fits(q, kMostHeadDim) && fits(k, kMostHeadDim) &&
         fits(v, kMostValueDim) && HasRoom(k.device(), k.size(2));
}

StreamedComparison::StreamedComparison(const AttentionSpec& spec, const at::Tensor& q,
                                       const at::Tensor& k, const at::Tensor& v)
    : spec_(spec),
      q_(q),
      k_(k),
      v_(v),
      q_twice_(Twice(q)),
      k_wide_(at::cat({k, at::zeros_like(k)}, -1)),
      v_wide_(at::cat({v, at::zeros_like(v), at::zeros_like(v)}, -1)) {
  if (const at::Tensor sinks = SinkLogits(spec, k.device()); sinks.defined())
    sinks_ = sinks.view({spec.num_kv_heads, -1, 1, 1});
  const at::Tensor positions = at::arange(k.size(0), k.options().dtype(at::kLong));
  reference_.visible_keys =
      spec.window ? positions.add(1).clamp_max(*spec.window) : positions.add(1);
  const at::Tensor found = CompareRows({k, v, {}, {}}, {}, {});
  reference_.output_sq = found[kOutputSq];
  reference_.logit_sq = found[kLogitSq];
}

// Returns scaled logits [num_kv_heads, gqa_ratio, rows, keys] in float32.
at::Tensor StreamedComparison::Logits(const at::Tensor& queries, const at::Tensor& keys) const {
  at::Tensor logits = queries.to(at::kFloat)
                          .view({queries.size(0), spec_.num_kv_heads, -1, queries.size(2)})
                          .permute({1, 2, 0, 3})
                          .matmul(keys.permute({1, 2, 0}).unsqueeze(1))
                          .mul_(spec_.scale);
  SoftCap(spec_.softcap, logits);
  return logits;
}

StreamedComparison::Part StreamedComparison::QuantizedPart(int64_t begin, int64_t end,
                                                           const Reach& reach,
                                                           const Operands& operands) const {
  const at::Tensor positions = at::arange(begin, end, k_.options().dtype(at::kLong));
  const AttentionKlShape shape{.tokens = k_.size(0),
                               .num_q_heads = spec_.num_q_heads,
                               .num_kv_heads = spec_.num_kv_heads,
                               .head_dim = k_wide_.size(2),
                               .v_head_dim = v_wide_.size(2),
                               .rows = end - begin};
  const AttentionKlOptions options{.scale = spec_.scale,
                                   .softcap = spec_.softcap,
                                   .window = spec_.window.value_or(0),
                                   .sink = reach.sink,
                                   .recent = reach.recent,
                                   .skip_exact = true,
                                   .outputs = true,
                                   .logit_sq = true};
  const auto float32 = k_.options().dtype(at::kFloat);
  const at::Tensor rows =
      at::empty({Part::kFields, spec_.num_kv_heads, spec_.gqa_ratio(), shape.rows}, float32);
  const at::Tensor outputs =
      at::empty({2, spec_.num_kv_heads, spec_.gqa_ratio(), shape.rows, shape.v_head_dim}, float32);
  const auto size = static_cast<int64_t>(AttentionKlWorkspace(shape, options));
  const at::Tensor workspace = at::empty({size}, k_.options().dtype(at::kByte));
  const auto of = [](const at::Tensor& x, int64_t i) { return x[i].mutable_data_ptr<float>(); };
  const c10::cuda::CUDAGuard guard(k_.device());
  AttentionKl(shape, options,
              {.q = Data(q_twice_),
               .q_hat = operands.q.defined() ? Data(operands.q) : nullptr,
               .k = Data(k_wide_),
               .k_hat = Data(operands.k),
               .v = Data(v_wide_),
               .v_hat = Data(operands.v),
               .positions = positions.const_data_ptr<int64_t>()},
              {.kl = of(rows, Part::kKl),
               .logit_error_sq = of(rows, Part::kLogitErrorSq),
               .logit_sq = of(rows, Part::kLogitSq),
               .lse = of(rows, Part::kLse),
               .lse_hat = of(rows, Part::kLseOther),
               .output = of(outputs, 0),
               .output_hat = of(outputs, 1)},
              workspace.mutable_data_ptr(), static_cast<size_t>(size),
              c10::cuda::getCurrentCUDAStream(k_.device().index()).stream());
  const int64_t dim = v_.size(2);
  return {rows, outputs[0].narrow(-1, 0, dim), outputs[1].narrow(-1, 0, dim),
          outputs[1].narrow(-1, dim, dim) + outputs[1].narrow(-1, 2 * dim, dim)};
}

// Compares the few keys that rows read exactly. Undefined `own_queries` are the reference's.
StreamedComparison::Part StreamedComparison::ExactPart(int64_t begin, int64_t end,
                                                       const Reach& reach,
                                                       const StoredCache& stored,
                                                       const at::Tensor& own_queries,
                                                       const ExactSides& exact) const {
  const auto on_device = k_.options().dtype(at::kLong);
  const int64_t first = std::min(end, std::max(reach.sink, begin - reach.recent + 1));
  const at::Tensor tokens = at::cat(
      {at::arange(std::min(reach.sink, end), on_device), at::arange(first, end, on_device)});
  const at::Tensor age = at::arange(begin, end, on_device).unsqueeze(1) - tokens;
  at::Tensor seen = age.ge(0).logical_and(age.lt(reach.recent).logical_or(tokens.lt(reach.sink)));
  if (spec_.window) seen = seen.logical_and(age.lt(*spec_.window));
  const at::Tensor hidden = seen.logical_not();
  const auto keys = [&](const at::Tensor& x) { return x.index_select(0, tokens).to(at::kFloat); };
  const auto mask = [&](const ExactTokens& side) {
    return side.any() ? ExactMask(side, at::arange(begin, end, at::kLong), tokens)
                      : at::zeros_like(hidden);
  };

  const at::Tensor k = keys(k_), v = keys(v_), q = q_.slice(0, begin, end);
  const at::Tensor own = own_queries.defined() ? own_queries.slice(0, begin, end) : q;
  const at::Tensor logits = Logits(q, k);
  const at::Tensor as_exact = own_queries.defined() || stored.k.defined()
                                  ? Logits(own, stored.k.defined() ? keys(stored.k) : k)
                                  : logits;
  const at::Tensor other = at::where(mask(exact.k), as_exact, Logits(own, keys(stored.k_stored)));
  const auto scores = [&](const at::Tensor& of) {
    const at::Tensor log = of.masked_fill(hidden, kHiddenLogit).log_softmax(-1);
    return LogAndScores{log, log.exp()};
  };
  const LogAndScores p = scores(logits), p_other = scores(other);
  const auto lse = [&](const at::Tensor& of) {
    return of.masked_fill(hidden, kHiddenLogit).logsumexp(-1);
  };
  const auto weighted = [](const at::Tensor& weights, const at::Tensor& values) {
    return weights.matmul(values.permute({1, 0, 2}).unsqueeze(1));
  };
  const at::Tensor exact_v = mask(exact.v);
  at::Tensor shift = weighted(p_other.scores.masked_fill(exact_v, 0), keys(stored.v_stored) - v);
  if (stored.v.defined())
    shift += weighted(p_other.scores.masked_fill(exact_v.logical_not(), 0), keys(stored.v) - v);
  const auto square_sum = [&](const at::Tensor& of) {
    return of.masked_fill(hidden, 0).square_().sum(-1);
  };
  return {at::stack({KlOfRows(p, p_other), square_sum(other - logits), square_sum(logits),
                     lse(logits), lse(other)}),
          weighted(p.scores, v), weighted(p_other.scores, v), shift};
}

// Joins the parts of the keys and the attention sinks. Returns [Result, num_kv_heads, gqa_ratio,
// rows].
at::Tensor StreamedComparison::Merge(std::span<const Part> parts) const {
  const auto weights = [&](Part::Field lse) {
    std::vector<at::Tensor> of_parts;
    for (const Part& part : parts) of_parts.push_back(part.rows[lse].clamp_min(kHiddenLogit));
    const at::Tensor log = WithSinks(at::stack(of_parts, -1), sinks_).log_softmax(-1);
    return LogAndScores{log, log.exp()};
  };
  const LogAndScores own = weights(Part::kLse), other = weights(Part::kLseOther);
  at::Tensor kl = KlOfRows(own, other), logit_error_sq = at::zeros_like(kl),
             logit_sq = at::zeros_like(kl);
  at::Tensor output = at::zeros_like(parts[0].output), other_output = at::zeros_like(output),
             shift = at::zeros_like(output);
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto weight = [&](const LogAndScores& of) {
      return of.scores.select(-1, static_cast<int64_t>(i)).unsqueeze(-1);
    };
    kl.addcmul_(weight(own).squeeze(-1), parts[i].rows[Part::kKl]);
    logit_error_sq.add_(parts[i].rows[Part::kLogitErrorSq]);
    logit_sq.add_(parts[i].rows[Part::kLogitSq]);
    output.addcmul_(weight(own), parts[i].output);
    other_output.addcmul_(weight(other), parts[i].other);
    shift.addcmul_(weight(other), parts[i].shift);
  }
  const auto energy = [](const at::Tensor& outputs) { return outputs.square().sum(-1); };
  const at::Tensor of_scores = other_output.sub_(output);
  return at::stack({kl, energy(of_scores + shift), energy(of_scores), energy(shift), logit_error_sq,
                    energy(output), logit_sq});  // in the order of Result
}

// Compares all rows for one rule about exact tokens. Returns [Result, num_kv_heads, gqa_ratio,
// tokens].
at::Tensor StreamedComparison::CompareRows(const StoredCache& stored, const at::Tensor& own_queries,
                                           const ExactSides& exact) const {
  OSCAR_CHECK(!own_queries.defined() || own_queries.scalar_type() == at::kBFloat16);
  const int64_t tokens = k_.size(0);
  Operands operands;
  operands.k = InTwoParts(stored.k_stored);
  if (own_queries.defined()) operands.q = Twice(own_queries);
  operands.v = at::cat({v_, InTwoParts(stored.v_stored - v_)}, -1);

  const Reach reach(exact, tokens);
  const int64_t row_bytes = 2 * 4 * spec_.num_q_heads * operands.v.size(2);
  const int64_t step = std::max<int64_t>(1, kOutputBytes / row_bytes / kBlockRows) * kBlockRows;
  std::vector<at::Tensor> results;
  for (int64_t begin = 0; begin < tokens; begin += step) {
    const int64_t end = std::min(tokens, begin + step);
    const Part quantized = QuantizedPart(begin, end, reach, operands);
    if (!reach.any()) results.push_back(Merge(std::array{quantized}));
    for (int64_t at = begin; reach.any() && at < end; at += kBlockRows) {
      const int64_t to = std::min(end, at + kBlockRows);
      results.push_back(Merge(std::array{quantized.Rows(at - begin, to - begin),
                                         ExactPart(at, to, reach, stored, own_queries, exact)}));
    }
  }
  return at::cat(results, -1);
}

RowErrors StreamedComparison::NoErrors() const {
  const at::Tensor none = at::zeros_like(reference_.output_sq);
  return {none, none, none, none, none};
}

std::vector<RowErrors> StreamedComparison::Compare(const StoredCache& stored,
                                                   const at::Tensor& own_queries,
                                                   std::span<const ExactSides> exact) const {
  std::vector<RowErrors> errors;
  for (const ExactSides& sides : exact) {
    const at::Tensor found = CompareRows(stored, own_queries, sides);
    errors.push_back({found[kKl], found[kOutputErrorSq], found[kKTermSq], found[kVTermSq],
                      found[kLogitErrorSq]});
  }
  return errors;
}

}  // namespace oscar
