// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/generate/token_sampler.h"

#include <ATen/ops/cumsum.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

// Draws one index per row.  // [n, vocab_size] -> [n] int64
at::Tensor Draw(const at::Tensor& logits, const SamplingOptions& options,
                std::span<const DrawKey> keys) {
  std::vector<double> draws;
  for (const DrawKey& key : keys) draws.push_back(UniformDraw(options.seed, key));
  const at::Tensor uniform =
      at::from_blob(draws.data(), {std::ssize(draws), 1}, at::kDouble).clone().to(logits.device());
  const at::Tensor all = at::softmax(logits.to(at::kDouble).div_(options.temperature), -1);
  // Sorts by descending probability; equally likely tokens keep the order of their ids.
  const auto [sorted, ids] = at::sort(all, /*stable=*/true, -1, /*descending=*/true);
  const at::Tensor sums = at::cumsum(sorted, -1);
  // Index of the last token in the nucleus, the smallest set of most likely tokens that reaches
  // top_p. A token belongs to it if the probabilities before it sum to less than top_p.
  const at::Tensor last = sums.sub(sorted).lt(options.top_p).sum(-1, /*keepdim=*/true).sub_(1);
  const at::Tensor target = uniform.mul(sums.gather(-1, last));
  const at::Tensor place =
      at::minimum(at::searchsorted(sums, target, /*out_int32=*/false, /*right=*/true), last);
  return ids.gather(-1, place).squeeze(-1);
}

}  // namespace

double UniformDraw(uint64_t seed, const DrawKey& key) {
  const auto mix = [](uint64_t value) { return SplitMix64(value).Next(); };
  return UnitInterval(mix(mix(mix(seed) ^ key.sequence) ^ key.position));
}

std::vector<int32_t> ChooseTokens(const at::Tensor& logits, const SamplingOptions& options,
                                  std::span<const DrawKey> keys) {
  OSCAR_CHECK_EQ(std::ssize(keys), logits.size(0));
  if (logits.isnan().any().item<bool>())
    throw NumericalError(
        "the model's logits contain NaN, usually because its arithmetic overflowed; use a wider "
        "type (--dtype bf16 or f32)");
  const at::Tensor chosen =
      (options.temperature > 0 ? Draw(logits, options, keys) : logits.argmax(-1)).cpu();
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < chosen.numel(); ++i)
    ids.push_back(static_cast<int32_t>(chosen.const_data_ptr<int64_t>()[i]));
  return ids;
}

}  // namespace oscar
