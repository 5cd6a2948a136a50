// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// QTIP's trellis code for weights (arXiv 2406.11235), applied to rotated rows. No server uses it
// for a cache, because writing a value searches 2^10 states. It shows how much a 2-bit codec can
// gain, with the same rotation, over rounding each value separately.
#include "export/simulate/affine_cost.h"
#include "export/simulate/chosen_cache.h"
#include "export/simulate/codecs/trellis_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/stored_rotations.h"

namespace oscar {
namespace {

RotatedSides WithTrellis(RotatedSides sides) {
  sides.k.codec = sides.v.codec = [](const at::Tensor& rows) { return TrellisRoundTrip(rows); };
  return sides;
}

// In addition to 2 bits per value, a row stores its scale and the first state's bits except two.
constexpr double kTrellisRowBits = kTrellisStateBits - 2 + 16;
constexpr AffineSide kTrellisCost = {.metadata_bits = kTrellisRowBits,
                                     .actual_metadata_bits = kTrellisRowBits,
                                     .quant_group_size = kWholeHead};

}  // namespace

std::vector<CacheMethod> TrellisMethods() {
  std::vector<CacheMethod> methods = {
      TokenMethod(
          "hadamard_trellis",
          "upper bound for codecs: Hadamard rotation with a trellis code, 2 bits",
          [](const MethodContext& context, size_t layer_index) {
            const AttentionSpec& spec = context.layers()[layer_index].attention;
            return WithTrellis({{.rotation = HadamardTensor(spec.head_dim)},
                                {.rotation = HadamardTensor(spec.v_head_dim)}});
          },
          AffineCost(kTrellisCost)),
      TokenMethod(
          "oscar_trellis", "upper bound for codecs: OSCAR's rotations with a trellis code, 2 bits",
          [](const MethodContext& context, size_t layer_index) {
            return WithTrellis(StoredRotations(context, layer_index, RotationGrouping::kOwn, {}));
          },
          AffineCost(kTrellisCost))};
  methods.back().available = HasStoredRotations(RotationGrouping::kOwn);
  CacheMethod chosen = AutoChoiceMethod();
  chosen.name = "auto_trellis";
  chosen.description = "upper bound for codecs: the automatic choice with a trellis code, 2 bits";
  chosen.make = [](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
    return ChoiceCache(ChoiceOf(context, layer_index),
                       context.layers()[layer_index].attention.num_kv_heads,
                       ArmWindows(context, options), {},
                       [](const at::Tensor& rows) { return TrellisRoundTrip(rows); });
  };
  chosen.cost = AffineCost(kTrellisCost);
  methods.push_back(std::move(chosen));
  return methods;
}

}  // namespace oscar
