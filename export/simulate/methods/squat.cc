// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SQuat (arXiv 2503.24358) on KIVI's format. The channels of keys are rounded 64 at a time. After
// each step, the channels that are not yet rounded move, so that the error leaves the subspace of
// the queries. Let Q be the first r singular directions of the queries times their singular values,
// and P = I + lambda Q^T Q. An error e of channels b moves the rest by -P_rest,rest^-1 P_rest,b e,
// which minimizes the whole error in the metric P. Red-Hat-AI-Innovation-Team/SQuat
// (quant/new_pack.py) computes the same matrices by a recursion. Q comes from calibration queries,
// as in its my_test_math500_offline.py; its online form uses the prompt's queries. Ranks and sizes
// are those of its example.py.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <utility>

#include "export/simulate/methods/kivi.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rope_rows.h"
#include "export/simulate/token_blocks.h"
#include "linalg/eigh.h"

namespace oscar {
namespace {

constexpr KiviOptions kSquatFormat = {.bits = 2, .quant_group_size = 32, .residual = 32};
constexpr int64_t kSquatChannels = 64;  // channels rounded together
constexpr int64_t kSquatRank = 20;      // r
constexpr double kSquatLambda = 0.001;

// Returns the sum of q^T q over the queries of a KV head, averaged over calibration sequences.
Matrix QueryGram(const std::vector<at::Tensor>& sequences, int64_t head, int64_t num_kv_heads) {
  at::Tensor sum;
  for (const at::Tensor& queries : sequences) {
    const at::Tensor own =
        queries.unflatten(1, {num_kv_heads, -1}).select(1, head).flatten(0, 1).to(at::kDouble);
    const at::Tensor gram = at::matmul(own.t(), own).cpu();
    sum = sum.defined() ? sum.add(gram) : gram;
  }
  sum = sum.div(static_cast<double>(sequences.size())).contiguous();
  return Eigen::Map<const Matrix>(sum.const_data_ptr<double>(), sum.size(0), sum.size(1));
}

// Returns the matrix P for `gram` [dim, dim].
Matrix SubspaceMetric(const Matrix& gram, const std::string& what) {
  const Eigenbasis basis = SymmetricEigenbasis(gram, what);
  const Eigen::Index dim = gram.rows(), rank = std::min<Eigen::Index>(kSquatRank, dim);
  const auto directions = basis.eigenvectors.rightCols(rank);
  return Matrix::Identity(dim, dim) + kSquatLambda * directions *
                                          basis.eigenvalues.tail(rank).asDiagonal() *
                                          directions.transpose();
}

// Returns how far the later channels move per unit of error in channels [begin, end):
// [num_kv_heads, dim - end, end - begin].
at::Tensor MovedBy(const std::vector<Matrix>& metrics, int64_t begin, int64_t end) {
  std::vector<at::Tensor> moves;
  for (const Matrix& p : metrics) {
    const Eigen::Index rest = p.rows() - end;
    const Matrix move =
        p.bottomRightCorner(rest, rest).llt().solve(p.block(end, begin, rest, end - begin));
    moves.push_back(at::empty({end - begin, rest}, at::kDouble));
    Eigen::Map<Matrix>(moves.back().mutable_data_ptr<double>(), rest, end - begin) = -move;
  }
  return at::stack(moves).transpose(1, 2);
}

// Rounds channels [blocks, num_kv_heads, dim, tokens] in turn. Errors move the later channels.
at::Tensor RoundInTurn(const at::Tensor& channels, const std::vector<at::Tensor>& moves) {
  at::Tensor read = channels.clone();
  const int64_t dim = channels.size(2);
  for (int64_t begin = 0; begin < dim; begin += kSquatChannels) {
    const int64_t end = std::min(begin + kSquatChannels, dim);
    const at::Tensor own = read.slice(2, begin, end);
    const at::Tensor rounded = KiviChannels(own.contiguous(), kSquatFormat);
    if (end < dim) {
      const at::Tensor& move = moves[static_cast<size_t>(begin / kSquatChannels)];
      read.slice(2, end).add_(at::matmul(move.to(own.options()), rounded.sub(own)));
    }
    own.copy_(rounded);
  }
  return read;
}

LayerCache SquatCache(const MethodContext& context, size_t layer_index, bool before_rope) {
  const LayerSpec& layer = context.layers()[layer_index];
  const AttentionSpec& spec = layer.attention;
  std::vector<Matrix> metrics;
  for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
    metrics.push_back(
        SubspaceMetric(QueryGram(context.rows().q, head, spec.num_kv_heads),
                       fmt::format("layer {}, KV head {}, SQuat's queries", layer.layer_id, head)));
  }
  std::vector<at::Tensor> moves;
  for (int64_t end = kSquatChannels; end < spec.head_dim; end += kSquatChannels)
    moves.push_back(MovedBy(metrics, end - kSquatChannels, end));
  LayerCache cache =
      KiviCache(kSquatFormat, [moves = std::move(moves)](const at::Tensor& channels) {
        return RoundInTurn(channels, moves);
      });
  if (!before_rope) return cache;
  cache.store = [store = cache.store, rope = spec.rope](const CacheSides& rows) {
    CachedRows stored = store({UndoRope(ComputeRows(rows.k), rope), rows.v});
    stored.quantized.k = ApplyRope(stored.quantized.k, rope);
    return stored;
  };
  return cache;
}

CacheMethod Squat(std::string_view name, std::string_view description, bool before_rope) {
  return {.name = name,
          .description = description,
          .takes_clip = false,
          .takes_windows = false,
          .needs_rows = true,
          .make = [before_rope](
                      const MethodContext& context, size_t layer_index,
                      const ArmOptions&) { return SquatCache(context, layer_index, before_rope); },
          .cost = [](const MethodContext& context, const ArmOptions&,
                     int64_t tokens) { return KiviCost(kSquatFormat, context.layers(), tokens); }};
}

}  // namespace

std::vector<CacheMethod> SquatMethods() {
  return {Squat("squat2", "SQuat, 2 bits, groups of 32, keys before their rotary embedding", true),
          Squat("squat2_post", "SQuat, 2 bits, groups of 32, keys as they are read", false)};
}

}  // namespace oscar
