// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Block-GTQ (arXiv 2606.24033; JIA-Lab-research/blockgtq). Rope rotates a key's dimensions in pairs
// and keeps each pair's energy s = (E|q|^2 + E|k|^2) / 2. Each pair gets 1 to 8 bits, allocated so
// that the sum of s 4^-bits over all pairs is minimal (blockgtq/freq_analysis.py, allocator.py).
// The pairs of a head that have the same bits form one vector, stored as in TurboQuant with
// corrected norms: a norm, a random rotation, Gaussian levels (blockgtq/block_gtq_pipeline.py).
// Values are stored in the same way, with equal bits for all dimensions.
#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "calib/choose/bit_allocation.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/turboquant_tensor.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/random_rotation.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

constexpr double kBlockNormBits = 16;

struct BlockGtqRow {
  std::string_view name, description;
  int k_bits, v_bits;
};

constexpr BlockGtqRow kBlockGtqTable[] = {
    {"block_gtq_k2v2", "Block-GTQ: 2 bits, divided among rotary pairs of keys by their energy", 2,
     2},
    {"block_gtq_k3v2",
     "Block-GTQ: keys 3 bits, divided among rotary pairs by their energy; values 2 bits", 3, 2},
};

// The dimensions of a key, by their bits.
using BlockGroups = std::map<int, std::vector<int64_t>>;

// Dimensions without rope also form pairs, as if rope covered the whole head.
BlockGroups GroupsOf(const LayerMoments& moments, int64_t head, RopeSpec rope, int bits) {
  rope.rotary_dim = moments.head_dim;
  const Vector energy =
      moments.QueryCovariance(head).diagonal() + moments.KeySecondMoment(head).diagonal();
  std::vector<BitPart> pairs;
  for (int64_t i = 0; i < moments.head_dim / 2; ++i) {
    const RopePair pair = PairOf(rope, i);
    BitPart part{.elements = 2, .points = {}};
    for (int b = 1; b <= 8; ++b)
      part.points.push_back({static_cast<double>(b), (energy[pair.first] + energy[pair.second]) /
                                                         2 * std::ldexp(1, -2 * b)});
    pairs.push_back(std::move(part));
  }
  const std::vector<double> chosen =
      AllocateBits(pairs, static_cast<double>(bits * moments.head_dim));
  BlockGroups groups;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const RopePair pair = PairOf(rope, static_cast<int64_t>(i));
    std::vector<int64_t>& group = groups[static_cast<int>(chosen[i])];
    group.insert(group.end(), {pair.first, pair.second});
  }
  return groups;
}

// Returns a rule with corrected norms and the Lloyd-Max levels of N(0, 1), to which the sphere's
// levels converge in many dimensions.
const SphereRule& GaussianRule(int bits) {
  static const auto rules = [] {
    std::array<SphereRule, 9> all;
    for (int b = 1; b < 9; ++b) all[static_cast<size_t>(b)] = {SphereLloydMax(b, 1 << 24), true};
    return all;
  }();
  return rules.at(static_cast<size_t>(bits));
}

at::Tensor RoundGroups(const at::Tensor& rows, const std::vector<BlockGroups>& heads) {
  at::Tensor read = at::empty_like(rows);
  for (size_t head = 0; head < heads.size(); ++head) {
    int64_t begin = 0;
    for (const auto& [bits, dims] : heads[head]) {
      const auto part = [&, width = static_cast<int64_t>(dims.size())](const at::Tensor& x) {
        return x[static_cast<int64_t>(head)].narrow(-1, begin, width);
      };
      part(read).copy_(SphereRoundTrip(part(rows), GaussianRule(bits)));
      begin += static_cast<int64_t>(dims.size());
    }
  }
  return read;
}

std::vector<BlockGroups> HeadGroups(const MethodContext& context, size_t layer_index, int bits) {
  const LayerMoments moments = ArtifactMoments(context, layer_index);
  std::vector<BlockGroups> heads;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head)
    heads.push_back(GroupsOf(moments, head, context.layers()[layer_index].attention.rope, bits));
  return heads;
}

// Rotates each group of dimensions separately. The groups are placed next to each other, by bits.
Matrix GroupedRotation(const BlockGroups& groups, int64_t dim, uint64_t seed, uint64_t stream) {
  Matrix rotation = Matrix::Zero(dim, dim);
  Eigen::Index begin = 0;
  for (const auto& [bits, dims] : groups) {
    const auto width = static_cast<Eigen::Index>(dims.size());
    const Matrix turn = RandomRotation(width, seed, stream + static_cast<uint64_t>(bits));
    for (Eigen::Index i = 0; i < width; ++i)
      rotation.row(dims[static_cast<size_t>(i)]).segment(begin, width) = turn.row(i);
    begin += width;
  }
  return rotation;
}

RotatedSides BlockGtqSides(const BlockGtqRow& row, const MethodContext& context,
                           size_t layer_index) {
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  const uint64_t seed = context.options().seed;
  std::vector<BlockGroups> heads = HeadGroups(context, layer_index, row.k_bits);
  std::vector<Matrix> k, v;
  for (const BlockGroups& groups : heads) {
    const uint64_t stream = (uint64_t{1} << 61) | layer_index << 20 | k.size() << 5;
    k.push_back(GroupedRotation(groups, spec.head_dim, seed, stream));
    v.push_back(RandomRotation(spec.v_head_dim, seed, stream));
  }
  return {{.rotation = RotationTensor(k),
           .codec = [heads = std::move(heads)](
                        const at::Tensor& rows) { return RoundGroups(rows, heads); }},
          {.rotation = RotationTensor(v),
           .codec = [rule = GaussianRule(row.v_bits)](const at::Tensor& rows) {
             return SphereRoundTrip(rows, rule);
           }}};
}

// The paper counts only code bits, although each group also stores a norm.
CacheCost BlockGtqCost(const BlockGtqRow& row, const MethodContext& context,
                       const ArmOptions& options, int64_t tokens) {
  double groups = 0, heads = 0;
  for (size_t layer = 0; layer < context.layers().size(); ++layer) {
    for (const BlockGroups& head : HeadGroups(context, layer, row.k_bits)) {
      groups += static_cast<double>(head.size());
      ++heads;
    }
  }
  const auto side = [](int bits, double norms) {
    return AffineSide{.bits = static_cast<double>(bits),
                      .metadata_bits = 0,
                      .actual_metadata_bits = norms * kBlockNormBits,
                      .quant_group_size = kWholeHead};
  };
  return AffineCost(side(row.k_bits, groups / heads), side(row.v_bits, 1))(context, options,
                                                                           tokens);
}

CacheMethod BlockGtq(const BlockGtqRow& row) {
  CacheMethod method = TokenMethod(
      row.name, row.description,
      [&row](const MethodContext& context, size_t layer_index) {
        return BlockGtqSides(row, context, layer_index);
      },
      [&row](const MethodContext& context, const ArmOptions& options, int64_t tokens) {
        return BlockGtqCost(row, context, options, tokens);
      });
  method.why_no_latents = "it divides bits among rotary pairs, and latents have none";
  method.available = HasFit;
  return method;
}

}  // namespace

std::vector<CacheMethod> BlockGtqMethods() {
  std::vector<CacheMethod> methods;
  for (const BlockGtqRow& row : kBlockGtqTable) methods.push_back(BlockGtq(row));
  return methods;
}

}  // namespace oscar
