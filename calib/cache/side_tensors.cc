// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/side_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "calib/cache/bf16_arithmetic.h"
#include "capture/model/run/decoder_layer.h"  // PairsOf
#include "capture/model/run/device.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// [tokens, heads, dim] -> [1, heads, tokens, dim]
at::Tensor OneSequence(const at::Tensor& rows) {
  return rows.permute({1, 0, 2}).unsqueeze(0).contiguous();
}

}  // namespace

at::Tensor MatricesOf(const std::vector<double>& values, int64_t rows, int64_t columns,
                      at::Device device) {
  const int64_t n = std::ssize(values) / (rows * columns);
  OSCAR_CHECK_EQ(n * rows * columns, std::ssize(values));
  const at::Tensor host = at::empty({n, rows, columns}, at::kFloat);
  std::transform(values.begin(), values.end(), host.mutable_data_ptr<float>(),
                 [](double value) { return static_cast<float>(value); });
  return SendTo(host, device);
}

at::Tensor RotationTensor(const CacheSide& side, at::Device device) {
  return MatricesOf(side.rotation, side.dim, side.dim, device);
}

at::Tensor AtOffset(const at::Tensor& rows, const RopeSpec& rope, int64_t offset) {
  if (offset == 0) return rows;
  const std::vector<double> frequencies = InverseFrequencies(rope);
  const at::Tensor angle = at::tensor(frequencies, at::kDouble).mul_(static_cast<double>(offset));
  const at::Tensor cos = angle.cos().to(rows.device(), at::kFloat),
                   sin = angle.sin().to(rows.device(), at::kFloat);
  at::Tensor turned = rows.to(at::kFloat).clone();
  const PairViews pairs = PairsOf(turned, rope);
  const at::Tensor first = pairs.first.clone(), second = pairs.second.clone();
  pairs.first.copy_(first.mul(cos).sub_(second.mul(sin)));
  pairs.second.copy_(second.mul(cos).add_(first.mul(sin)));
  return turned;
}

SidesOnDevice ToDevice(std::span<const CacheSide* const> sides, at::Device device) {
  const int64_t dim = sides[0]->dim;
  // Copies all sides to the device at once.
  const auto stacked = [&](std::span<const std::vector<double>* const> values, int64_t rows,
                           float missing) {
    int64_t heads = 0;
    for (const auto* of_side : values) heads = std::max(heads, std::ssize(*of_side) / (rows * dim));
    if (heads == 0) return at::Tensor();
    const at::Tensor host = at::empty({std::ssize(values), 1, heads, rows, dim},
                                      at::TensorOptions().pinned_memory(!device.is_cpu()));
    float* to = host.mutable_data_ptr<float>();
    for (const auto* of_side : values) {
      const int64_t own = std::ssize(*of_side) / (rows * dim);
      OSCAR_CHECK(own == 0 || own == 1 || own == heads);
      for (int64_t head = 0; head < heads; ++head) {
        if (own == 0) {
          to = std::fill_n(to, rows * dim, missing);
        } else {
          const double* from = of_side->data() + (own == 1 ? 0 : head * rows * dim);
          to = std::transform(from, from + rows * dim, to,
                              [](double value) { return static_cast<float>(value); });
        }
      }
    }
    return host.to(device, /*non_blocking=*/true);
  };
  const auto all = [&](auto member) {
    std::vector<const std::vector<double>*> values;
    for (const CacheSide* side : sides) values.push_back(&member(*side));
    return values;
  };
  SidesOnDevice on_device;
  on_device.rotation = stacked(all([](const CacheSide& s) -> auto& { return s.rotation; }), dim, 0);
  const bool own_queries = std::ranges::any_of(
      sides, [](const CacheSide* side) { return !side->query_rotation.empty(); });
  on_device.query_rotation =
      own_queries ? stacked(all([](const CacheSide& s) -> auto& {
                              return s.query_rotation.empty() ? s.rotation : s.query_rotation;
                            }),
                            dim, 0)
                  : on_device.rotation;
  on_device.pair_scale =
      stacked(all([](const CacheSide& s) -> auto& { return s.pair_scale; }), 1, 1);
  on_device.mean = stacked(all([](const CacheSide& s) -> auto& { return s.mean; }), 1, 0);
  const auto fed = [](const CacheSide* side) { return !side->feedback.empty(); };
  OSCAR_CHECK(std::ranges::all_of(sides, fed) || std::ranges::none_of(sides, fed));
  on_device.feedback = stacked(all([](const CacheSide& s) -> auto& { return s.feedback; }), dim, 0);
  return on_device;
}

at::Tensor TurnedKeys(const SidesOnDevice& sides, const at::Tensor& keys) {
  at::Tensor k = RoundedToBf16(keys);
  if (sides.pair_scale.defined())  // matches the projections and norms of a folded checkpoint
    k = RoundedToBf16(k.mul(sides.pair_scale));
  if (sides.mean.defined()) k = k.sub(sides.mean);
  return TimesInBf16(k, sides.rotation);
}

at::Tensor TurnedValues(const SidesOnDevice& sides, const at::Tensor& values) {
  return TurnedKeys(sides, values);
}

at::Tensor TurnedQueries(const SidesOnDevice& sides, const at::Tensor& queries) {
  at::Tensor q = RoundedToBf16(queries);
  if (sides.pair_scale.defined()) q = RoundedToBf16(q.div(sides.pair_scale));
  return TimesInBf16(q, sides.query_rotation);
}

at::Tensor ValuesTurnedBack(const SidesOnDevice& sides, const at::Tensor& rotated) {
  at::Tensor v = at::matmul(rotated, RoundedToBf16(sides.query_rotation.transpose(-1, -2)));
  if (sides.mean.defined()) v = v.add(sides.mean);
  if (sides.pair_scale.defined()) v = v.div(sides.pair_scale);
  return v;
}

SidesOnDevice OneSide(const CacheSide& side, at::Device device) {
  const CacheSide* const one[] = {&side};
  return ToDevice(one, device);
}

at::Tensor FeedbackOf(const SidesOnDevice& side) {
  return side.feedback.defined() ? side.feedback[0][0] : at::Tensor();
}

at::Tensor KeysOfOne(const SidesOnDevice& side, const at::Tensor& keys) {
  return TurnedKeys(side, OneSequence(keys))[0][0];
}

at::Tensor ValuesOfOne(const SidesOnDevice& side, const at::Tensor& values) {
  return TurnedValues(side, OneSequence(values))[0][0];
}

at::Tensor QueriesOfOne(const SidesOnDevice& side, const at::Tensor& queries,
                        int64_t num_kv_heads) {
  const int64_t rows = queries.size(0), dim = queries.size(2);
  const at::Tensor q = queries.reshape({rows, num_kv_heads, -1, dim})
                           .permute({1, 2, 0, 3})
                           .reshape({1, num_kv_heads, -1, dim});
  return TurnedQueries(side, q)[0][0]
      .view({num_kv_heads, -1, rows, dim})
      .permute({2, 0, 1, 3})
      .flatten(1, 2);
}

at::Tensor ValuesBackOfOne(const SidesOnDevice& side, const at::Tensor& rotated) {
  return ValuesTurnedBack(side, rotated.unsqueeze(0))[0][0];
}

}  // namespace oscar
