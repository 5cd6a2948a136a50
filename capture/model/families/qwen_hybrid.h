// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Common code of Qwen3-Next and Qwen3.5: three layers of linear attention per layer of softmax
// attention, whose output has a gate. Trap: all norms are (1 + w) except the one inside linear
// attention, and q_proj gives [query | gate] for each head.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

// `fused`: linear attention is stored as in Qwen3-Next. `dense_mlp`: every layer has an MLP.
ModelSpec ReadQwenHybrid(ConfigReader& config, bool fused, bool dense_mlp);

// The experts of both families; they differ only in whether weights are normalized.
ExpertsSpec ReadQwenHybridExperts(ConfigReader& config, int64_t hidden_size);

}  // namespace oscar
