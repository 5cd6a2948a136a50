// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that scale keys by a diagonal matrix and then rotate them by OSCAR, fitted to the scaled
// queries (RESULTS.md, "A better key transform"). The diagonal commutes with rope, so it can be
// folded into the checkpoint (export/fold). Pair-scaled keys are also centred. To separate the two
// gains, `oscar_per_head_centred` only centres keys; otherwise it equals `oscar_per_head`,
// including clip ratios.
#include "export/simulate/methods/methods.h"
#include "export/simulate/transformed_methods.h"

namespace oscar {
namespace {

constexpr KeyRecipe kScaledKeys = {
    .kind = KeyTransformKind::kPairScaled, .per_head = true, .centred = true};

const TransformedMethod kPairScaled[] = {
    {.name = "oscar_per_head_centred",
     .description = "OSCAR per KV head, keys centred, 2 bits",
     .keys = {.per_head = true, .centred = true},
     .k_clip = 0,
     .v_clip = 0},
    {.name = "pair_scaled",
     .description = "pair-scaled keys and OSCAR per KV head, centred, 2 bits",
     .keys = kScaledKeys},
    {.name = "pair_scaled_pow2",
     .description = "pair-scaled keys with powers of two and OSCAR per KV head, centred, 2 bits",
     .keys = {.kind = KeyTransformKind::kPairScaled,
              .power_of_two = true,
              .per_head = true,
              .centred = true}},
    {.name = "pair_scaled_k3v2",
     .description = "pair-scaled keys and OSCAR per KV head, centred, 3 bits; values 2 bits",
     .keys = kScaledKeys,
     .k_bits = 3,
     .k_clip = 0.96,
     .v_clip = 0.90},
    {.name = "pair_scaled_k4v2",
     .description = "pair-scaled keys and OSCAR per KV head, centred, 4 bits; values 2 bits",
     .keys = kScaledKeys,
     .k_bits = 4,
     .k_clip = 0.99,
     .v_clip = 0.90},
};

}  // namespace

std::vector<CacheMethod> PairScaledMethods() { return TransformedMethods(kPairScaled); }

}  // namespace oscar
