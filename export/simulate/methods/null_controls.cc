// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Null controls: rotations made without knowledge of a layer's attention. OSCAR's gain must vanish
// with them, or the measurement cannot be trusted.
#include <optional>

#include "export/simulate/affine_cost.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/random_rotation.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/base/parallel_for.h"
#include "linalg/eigh.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

CacheMethod Control(std::string_view name, std::string_view description, auto make,
                    std::function<bool(const MethodContext&)> available = {}) {
  return {.name = name,
          .description = description,
          .null_control = true,
          .as_published = {.clip = true, .windows = true},
          .clip_ratios = kArtifactClipRatios,
          .make = make,
          .cost = AffineCost({}),
          .available = std::move(available)};
}

LayerCache WithArtifactClip(const MethodContext& context, size_t layer_index,
                            const ArmOptions& options, at::Tensor k, at::Tensor v) {
  return RotatedCache(context, options,
                      AffineSides(context, std::move(k), std::move(v),
                                  ArtifactClip(context.Stored(layer_index), options)));
}

at::Tensor RandomRotations(const MethodContext& context, size_t layer_index, char side,
                           int64_t dim) {
  const int64_t heads = context.layers()[layer_index].attention.num_kv_heads;
  std::vector<Matrix> rotations(static_cast<size_t>(heads));
  ParallelFor(heads, [&](int64_t head) {
    const uint64_t stream = (layer_index << 20 | static_cast<uint64_t>(head)) << 1 | (side == 'v');
    rotations[static_cast<size_t>(head)] = RandomRotation(dim, context.options().seed, stream);
  });
  return RotationTensor(rotations);
}

// Returns the first layer with the same geometry from half the model away on, if there is another.
std::optional<size_t> OtherLayer(const MethodContext& context, size_t layer_index) {
  const auto& layers = context.layers();
  const AttentionSpec& own = layers[layer_index].attention;
  for (size_t step = 0; step < layers.size(); ++step) {
    const size_t other = (layer_index + layers.size() / 2 + step) % layers.size();
    const AttentionSpec& spec = layers[other].attention;
    if (other != layer_index && spec.head_dim == own.head_dim &&
        spec.v_head_dim == own.v_head_dim && spec.num_kv_heads == own.num_kv_heads)
      return other;
  }
  return std::nullopt;
}

bool EveryLayerHasAnother(const MethodContext& context) {
  for (size_t i = 0; i < context.layers().size(); ++i) {
    if (!OtherLayer(context, i)) return false;
  }
  return true;
}

// Shuffling the tokens of each channel separately keeps the channels' energies but destroys their
// correlation, so only the diagonal of the covariance remains.
Matrix Shuffled(const Matrix& covariance) { return covariance.diagonal().asDiagonal(); }

LayerCache ShuffledTokens(const MethodContext& context, size_t layer_index,
                          const ArmOptions& options) {
  const Artifact& artifact = context.artifact();
  const LayerMoments moments = ArtifactMoments(context, layer_index);
  const Composition composition = ArtifactComposition(artifact);
  const ValueTarget target = ArtifactValueTarget(artifact);
  const auto heads = static_cast<size_t>(moments.num_kv_heads);
  std::vector<Matrix> k(heads), v(heads);
  ParallelFor(2 * moments.num_kv_heads, [&](int64_t index) {
    const int64_t head = index / 2;
    const bool keys = index % 2 == 0;
    const Matrix covariance =
        Shuffled(keys ? moments.QueryCovariance(head) : moments.ValueCovariance(head, target));
    (keys ? k : v)[static_cast<size_t>(head)] =
        Compose(SymmetricEigenbasis(covariance, "shuffled tokens"), composition).matrix();
  });
  return WithArtifactClip(context, layer_index, options, RotationTensor(k), RotationTensor(v));
}

}  // namespace

CacheMethod IdentityControl() {
  return Control("identity", "null control: no rotation, with the artifact's clip ratios, 2 bits",
                 [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
                   return WithArtifactClip(context, layer_index, options, {}, {});
                 });
}

CacheMethod RandomRotationControl() {
  return Control("random_rotation", "null control: a random rotation for each KV head, 2 bits",
                 [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
                   const AttentionSpec& spec = context.layers()[layer_index].attention;
                   return WithArtifactClip(
                       context, layer_index, options,
                       RandomRotations(context, layer_index, 'k', spec.head_dim),
                       RandomRotations(context, layer_index, 'v', spec.v_head_dim));
                 });
}

CacheMethod WrongLayerControl() {
  return Control(
      "wrong_layer", "null control: the rotations of another layer, 2 bits",
      [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
        const StoredLayer& other = context.Stored(OtherLayer(context, layer_index).value());
        const at::Tensor k = RotationTensor(other.k), v = RotationTensor(other.v);
        return WithArtifactClip(context, layer_index, options, k, v);
      },
      EveryLayerHasAnother);
}

CacheMethod ShuffledTokensControl() {
  return Control("shuffled_tokens",
                 "null control: fitted to covariances of shuffled tokens, 2 bits", ShuffledTokens,
                 HasFit);
}

CacheMethod QuantizerOffControl() {
  CacheMethod method = Control(
      "quantizer_off", "null control: rotated and rotated back without quantization",
      [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
        const StoredLayer& layer = context.Stored(layer_index);
        return RotatedCache(
            context, options,
            AffineSides(context, RotationTensor(layer.k), RotationTensor(layer.v), {}, /*bits=*/0));
      });
  method.quantizes = method.takes_clip = method.takes_windows = false;
  method.as_published = {};
  method.cost = UnquantizedCost;
  return method;
}

}  // namespace oscar
