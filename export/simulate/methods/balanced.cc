// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods for runtimes that load different matrices for queries and keys. Keys are multiplied by an
// invertible matrix that balances their quantization noise against the queries (RESULTS.md, "A
// better key transform"). `balanced_values` also multiplies values by a matrix that balances their
// noise against o_proj.
#include "export/simulate/methods/methods.h"
#include "export/simulate/transformed_methods.h"

namespace oscar {
namespace {

constexpr KeyRecipe kBalancedKeys = {
    .kind = KeyTransformKind::kBalanced, .epsilon = 1e-3, .per_head = true, .centred = true};

const TransformedMethod kBalanced[] = {
    {.name = "balanced",
     .description = "balanced keys per KV head, centred, 2 bits",
     .keys = kBalancedKeys},
    {.name = "balanced_k3v2",
     .description = "balanced keys per KV head, centred, 3 bits; values 2 bits",
     .keys = kBalancedKeys,
     .k_bits = 3,
     .k_clip = 0.96,
     .v_clip = 0.90},
    {.name = "balanced_k4v2",
     .description = "balanced keys per KV head, centred, 4 bits; values 2 bits",
     .keys = kBalancedKeys,
     .k_bits = 4,
     .k_clip = 0.99,
     .v_clip = 0.90},
    {.name = "balanced_values",
     .description = "balanced keys and values per KV head, centred, 2 bits",
     .keys = kBalancedKeys,
     .value_epsilon = 1e-3},
};

}  // namespace

std::vector<CacheMethod> BalancedMethods() { return TransformedMethods(kBalanced); }

}  // namespace oscar
