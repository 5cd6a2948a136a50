// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// HeadQ (arXiv 2605.03562, abstract). Each key has a low-rank side code of its error e, in a basis
// learned from queries. Readers use it to correct the logits. A logit is linear in its key, so the
// correction is q U U^T e. U [head_dim, rank] holds the leading eigenvectors of the queries'
// covariance of a KV head, and U^T e is what the side code stores. The abstract gives neither the
// quantizer nor the rank nor the bits of the side code. Here keys have 2 bits after a Hadamard
// rotation, the rank is an eighth of the head dimension, and the side code has 4 bits with its own
// scale and zero.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <utility>

#include "calib/cache/affine_tensor.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/base/error.h"
#include "linalg/eigh.h"

namespace oscar {
namespace {

constexpr int64_t kShare = 8;  // one in eight of a head's directions has a side code
constexpr int kSideBits = 4;

// Returns [num_kv_heads, head_dim, rank] float32.
at::Tensor LeadingQueryDirections(const LayerMoments& moments) {
  std::vector<Matrix> bases;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    bases.push_back(SymmetricEigenbasis(moments.QueryCovariance(head),
                                        fmt::format("layer {}, KV head {}, query covariance",
                                                    moments.layer_id, head))
                        .eigenvectors);
  }
  const int64_t rank = moments.head_dim / kShare;
  return RotationTensor(bases).narrow(-1, moments.head_dim - rank, rank).contiguous();
}

LayerCache HeadQCache(const MethodContext& context, size_t layer_index, const ArmOptions& options) {
  const LayerMoments moments = ArtifactMoments(context, layer_index);
  if (moments.head_dim < 2 * kShare) {
    throw InputError(
        fmt::format("layer {}: HeadQ's side code needs a head dimension of at least {}, found {}",
                    moments.layer_id, 2 * kShare, moments.head_dim));
  }
  LayerCache cache = HadamardInt2Method().make(context, layer_index, options);
  cache.store = [store = std::move(cache.store),
                 basis = LeadingQueryDirections(moments)](const CacheSides& rows) {
    CachedRows stored = store(rows);
    at::Tensor& keys = stored.quantized.k;  // [tokens, heads, head_dim]
    const at::Tensor directions = basis.to(keys.device(), keys.scalar_type());
    const at::Tensor error = rows.k.to(keys.scalar_type()).sub(keys).transpose(0, 1);
    const at::Tensor side = AffineRoundTrip(at::matmul(error, directions).contiguous(), {},
                                            {kSideBits, directions.size(-1)});
    keys = keys.add(at::matmul(side, directions.transpose(1, 2)).transpose(0, 1));
    return stored;
  };
  return cache;
}

}  // namespace

std::vector<CacheMethod> HeadQMethods() {
  CacheMethod method = HadamardInt2Method();
  method.name = "headq";
  method.description =
      "HeadQ: Hadamard, 2 bits, errors of keys in the queries' leading directions in 4 bits";
  method.takes_bf16 = false;
  method.why_no_latents = "its side code only covers keys";
  method.make = HeadQCache;
  method.available = HasFit;
  // Keys have a second scale and zero, for the side code.
  method.cost = AffineCost(
      {.bits = 2 + double{kSideBits} / kShare, .metadata_bits = 64, .actual_metadata_bits = 128},
      {});
  return {method};
}

}  // namespace oscar
