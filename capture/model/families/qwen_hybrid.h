// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What Qwen3-Next and Qwen3.5 share: three layers of linear attention to one of softmax attention,
// whose output has a gate. Trap: all norms are (1 + w) but the one inside linear attention, and
// q_proj gives [query | gate] of each head.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

// `fused`: linear attention is stored as in Qwen3-Next. With an MLP in every layer if `dense_mlp`.
ModelSpec ReadQwenHybrid(ConfigReader& config, bool fused, bool dense_mlp);

// The experts of both families, but for whether their weights are normalized.
ExpertsSpec ReadQwenHybridExperts(ConfigReader& config, int64_t hidden_size);

}  // namespace oscar
