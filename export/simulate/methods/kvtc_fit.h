// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVTC's transform coder (arXiv 2511.01815, section 3) fitted to rows of one layer: principal
// components of all its heads' channels together, and which of them get how many bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace oscar {

// Neighbouring components of one token are coded together, with a 16-bit shift and scale of their
// own: integers between the group's least and largest value, or E4M3 floats about their middle.
enum class KvtcType { kInt2, kInt4, kFloat8 };
inline constexpr KvtcType kKvtcTypes[] = {KvtcType::kInt2, KvtcType::kInt4, KvtcType::kFloat8};
inline constexpr int64_t kKvtcGroupSizes[] = {1, 16, 64, 256, 1024};  // components

struct KvtcGroup {
  int64_t size = 1;
  KvtcType type = KvtcType::kInt2;

  bool operator==(const KvtcGroup&) const = default;
};
int64_t KvtcGroupBits(const KvtcGroup& group);  // of one token

// Returns components [..., size] of one group as they are read, float32 or float64.
at::Tensor KvtcGroupRoundTrip(const at::Tensor& components, KvtcType type);

// The groups of least error that `budget` bits pay for, from the first component on. Components
// after the last group have no bits and are read as their mean; their error is their energy.
// `error(begin, group)` is that of components [begin, begin + group.size). Dynamic programming over
// components and bits, as in the paper's appendix B.17.
std::vector<KvtcGroup> AllocateKvtcBits(
    std::span<const double> energies,
    const std::function<double(int64_t begin, const KvtcGroup& group)>& error, int64_t budget);

// One side of a layer, channels = num_kv_heads * dim.
struct KvtcSide {
  at::Tensor mean;   // [channels] float64
  at::Tensor basis;  // [channels, coded components] float64, by falling variance
  std::vector<KvtcGroup> groups;
};

struct KvtcOptions {
  double ratio = 8;  // of 16 bits to what a quantized token takes, before DEFLATE
  int64_t sink = 4;  // first tokens, exact, and not fitted to
};

// `sequences` [tokens, channels] each, `what` they are, for errors. Throws InputError if none is
// longer than the exact first tokens, NumericalError if the rows do not vary.
KvtcSide FitKvtc(const std::vector<at::Tensor>& sequences, const KvtcOptions& options,
                 const std::string& what);

// Returns rows [tokens, channels] as they are read, in their type.
at::Tensor KvtcRoundTrip(const at::Tensor& rows, const KvtcSide& side);

}  // namespace oscar
