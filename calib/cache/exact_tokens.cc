// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/exact_tokens.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {

ExactTokens ExactInWindows(const CacheWindows& windows) {
  ExactTokens tokens;
  tokens.sink = windows.sink;
  if (windows.recent > 0) {
    tokens.quantized_end = [recent = windows.recent](int64_t length) {
      return std::max<int64_t>(0, length - recent);
    };
  }
  return tokens;
}

ExactTokens ExactUntilBlocksFill(int64_t sink, int64_t block, int64_t recent) {
  return {sink, [=](int64_t length) {
            const int64_t full = std::max<int64_t>(0, length - sink - recent) / block;
            return sink + full * block;
          }};
}

at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions,
                     const at::Tensor& keys) {
  OSCAR_CHECK(positions.device().is_cpu() && positions.scalar_type() == at::kLong);
  const at::Tensor sinks =
      keys.lt(tokens.sink).unsqueeze(0).expand({positions.size(0), keys.size(0)});
  if (!tokens.quantized_end) return sinks;
  at::Tensor ends = positions.clone();
  int64_t* const end = ends.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < ends.numel(); ++i) end[i] = tokens.quantized_end(end[i] + 1);
  return sinks.logical_or(keys.ge(ends.to(keys.device(), /*non_blocking=*/true).unsqueeze(1)));
}

at::Tensor ExactMask(const ExactTokens& tokens, const at::Tensor& positions, int64_t num_keys,
                     at::Device device) {
  return ExactMask(tokens, positions, at::arange(num_keys, positions.options().device(device)));
}

}  // namespace oscar
