// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kvtc_fit.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/codecs/float8_tensor.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/eigh.h"
#include "linalg/group_allocation.h"

namespace oscar {
namespace {

constexpr int64_t kFactorBits = 16 + 16;    // shift and scale of a group
constexpr int64_t kAllocationTokens = 512;  // evenly spaced tokens on which bits are allocated
constexpr int64_t kWindowsAtOnce = 64;      // runs of components coded at once, which limits memory

int64_t BitsOf(KvtcType type) {
  switch (type) {
    case KvtcType::kInt2:
      return 2;
    case KvtcType::kInt4:
      return 4;
    case KvtcType::kFloat8:
      return 8;
  }
  OSCAR_CHECK(false);
}

at::Tensor Float8Group(const at::Tensor& x) {
  const auto stored = [](const at::Tensor& factor) {
    return RoundTo(factor, StoredFloat::kFloat16);
  };
  const at::Tensor low = x.amin(-1, true), high = x.amax(-1, true);
  const at::Tensor shift = stored(low.add(high).mul_(0.5));
  const at::Tensor largest = at::maximum(high.sub(shift), shift.sub(low));
  const at::Tensor scale = stored(largest.div(Float8Max(Float8Type::kE4M3)));
  const at::Tensor divisor = scale.masked_fill(scale.le(0), 1);
  return Float8RoundTrip(x.sub(shift), divisor, Float8Type::kE4M3).add_(shift);
}

// Returns the error of each run of `group.size` neighbouring components, by its first component.
std::vector<double> WindowErrors(const at::Tensor& components, const KvtcGroup& group) {
  const at::Tensor windows = components.unfold(1, group.size, 1);  // [tokens, begins, size]
  std::vector<double> errors;
  for (const at::Tensor& some : windows.split(kWindowsAtOnce, 1)) {
    const at::Tensor x = some.contiguous();
    const at::Tensor error =
        KvtcGroupRoundTrip(x, group.type).sub_(x).square_().sum(at::IntArrayRef{0, 2}).contiguous();
    const double* const values = error.const_data_ptr<double>();
    errors.insert(errors.end(), values, values + error.numel());
  }
  return errors;
}

at::Tensor TokensToFit(const std::vector<at::Tensor>& sequences, int64_t sink,
                       const std::string& what) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& rows : sequences)
    if (rows.size(0) > sink) parts.push_back(rows.slice(0, sink).to(at::kCPU, at::kDouble));
  if (parts.empty())
    throw InputError(
        fmt::format("{}: no calibration sequence is longer than the {} tokens that KVTC keeps "
                    "exact and does not use for fitting; give longer text",
                    what, sink));
  return at::cat(parts);
}

}  // namespace

int64_t KvtcGroupBits(const KvtcGroup& group) {
  return group.size * BitsOf(group.type) + kFactorBits;
}

at::Tensor KvtcGroupRoundTrip(const at::Tensor& components, KvtcType type) {
  if (type == KvtcType::kFloat8) return Float8Group(components);
  const AffineRule rule = {.family = AffineFamily::kMinOffset,
                           .bits = static_cast<int>(BitsOf(type)),
                           .metadata = StoredFloat::kFloat16};
  return AffineFamilyRoundTrip(components, rule, components.size(-1));
}

std::vector<KvtcGroup> AllocateKvtcBits(
    std::span<const double> energies,
    const std::function<double(int64_t begin, const KvtcGroup& group)>& error, int64_t budget) {
  std::vector<KvtcGroup> groups;
  std::vector<GroupOption> options;
  for (const int64_t size : kKvtcGroupSizes) {
    for (const KvtcType type : kKvtcTypes) {
      if (size > std::ssize(energies)) continue;
      groups.push_back({size, type});
      options.push_back({size, KvtcGroupBits(groups.back())});
    }
  }
  std::vector<KvtcGroup> allocated;
  for (const size_t option : AllocateGroups(
           options, energies, [&](int64_t begin, size_t i) { return error(begin, groups[i]); },
           budget))
    allocated.push_back(groups[option]);
  return allocated;
}

KvtcSide FitKvtc(const std::vector<at::Tensor>& sequences, const KvtcOptions& options,
                 const std::string& what) {
  const at::Tensor rows = TokensToFit(sequences, options.sink, what);
  const int64_t channels = rows.size(1);
  KvtcSide side;
  side.mean = rows.mean(0);
  const at::Tensor centred = rows.sub(side.mean);
  const at::Tensor covariance = at::matmul(centred.t(), centred).contiguous();
  const Eigenbasis eigen = SymmetricEigenbasis(
      Eigen::Map<const Matrix>(covariance.const_data_ptr<double>(), channels, channels), what);
  side.basis = at::empty({channels, channels}, at::kDouble);
  Eigen::Map<Matrix>(side.basis.mutable_data_ptr<double>(), channels, channels) =
      eigen.eigenvectors.rowwise().reverse();
  side.basis = side.basis.t();  // column-major: columns are components

  const int64_t step = (centred.size(0) + kAllocationTokens - 1) / kAllocationTokens;
  const at::Tensor components = at::matmul(centred.slice(0, 0, {}, step), side.basis).contiguous();
  const at::Tensor energies = components.square().sum(0).contiguous();
  std::map<std::pair<int64_t, KvtcType>, std::vector<double>> errors;  // by size and type
  const auto error = [&](int64_t begin, const KvtcGroup& group) {
    std::vector<double>& own = errors[{group.size, group.type}];
    if (own.empty()) own = WindowErrors(components, group);
    return own[static_cast<size_t>(begin)];
  };
  const auto budget = static_cast<int64_t>(16 * static_cast<double>(channels) / options.ratio);
  side.groups = AllocateKvtcBits(
      std::span(energies.const_data_ptr<double>(), static_cast<size_t>(channels)), error, budget);
  int64_t coded = 0;
  for (const KvtcGroup& group : side.groups) coded += group.size;
  side.basis = side.basis.slice(1, 0, coded).contiguous();
  return side;
}

// Always computes in float64. Every value of a token depends on every code, so one code that is
// rounded differently would change them all.
at::Tensor KvtcRoundTrip(const at::Tensor& rows, const KvtcSide& side) {
  const at::Tensor mean = side.mean.to(rows.device()), basis = side.basis.to(rows.device());
  at::Tensor components = at::matmul(rows.to(at::kDouble).sub(mean), basis);
  for (int64_t begin = 0; const KvtcGroup& group : side.groups) {
    const at::Tensor own = components.narrow(1, begin, group.size);
    own.copy_(KvtcGroupRoundTrip(own.contiguous(), group.type));
    begin += group.size;
  }
  return at::matmul(components, basis.t()).add_(mean).to(rows.scalar_type());
}

}  // namespace oscar
