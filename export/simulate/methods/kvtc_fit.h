// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits KVTC's transform coder (arXiv 2511.01815, section 3) to the rows of one layer: principal
// components over the channels of all heads, and the bits of each component.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace oscar {

// The code of a group: neighbouring components of a token that share a 16-bit shift and a 16-bit
// scale. Integer codes span the group's range from minimum to maximum; E4M3 floats are centred on
// its middle.
enum class KvtcType { kInt2, kInt4, kFloat8 };
inline constexpr KvtcType kKvtcTypes[] = {KvtcType::kInt2, KvtcType::kInt4, KvtcType::kFloat8};
inline constexpr int64_t kKvtcGroupSizes[] = {1, 16, 64, 256, 1024};  // in components

struct KvtcGroup {
  int64_t size = 1;
  KvtcType type = KvtcType::kInt2;

  bool operator==(const KvtcGroup&) const = default;
};
int64_t KvtcGroupBits(const KvtcGroup& group);  // per token

// Returns components [..., size] of one group as read back, float32 or float64.
at::Tensor KvtcGroupRoundTrip(const at::Tensor& components, KvtcType type);

// Chooses consecutive groups, from the first component on, that have the smallest error within
// `budget` bits. Components after the last group have no bits and are read as their mean, so their
// error is their energy. `error(begin, group)` returns the error of components
// [begin, begin + group.size). Uses dynamic programming over components and bits, as in the paper's
// appendix B.17.
std::vector<KvtcGroup> AllocateKvtcBits(
    std::span<const double> energies,
    const std::function<double(int64_t begin, const KvtcGroup& group)>& error, int64_t budget);

// The coder of a layer's keys or values, where channels = num_kv_heads * dim.
struct KvtcSide {
  at::Tensor mean;   // [channels] float64
  at::Tensor basis;  // [channels, coded components] float64, by decreasing variance
  std::vector<KvtcGroup> groups;
};

struct KvtcOptions {
  double ratio = 8;  // 16 bits / bits of a quantized value, before DEFLATE
  int64_t sink = 4;  // first tokens: exact, and left out of the fit
};

// Fits keys or values, `sequences` of [tokens, channels] each, which errors call `what`. Throws
// InputError if none is longer than the exact first tokens, NumericalError if the rows do not vary.
KvtcSide FitKvtc(const std::vector<at::Tensor>& sequences, const KvtcOptions& options,
                 const std::string& what);

// Returns rows [tokens, channels] as read back, in their type.
at::Tensor KvtcRoundTrip(const at::Tensor& rows, const KvtcSide& side);

}  // namespace oscar
