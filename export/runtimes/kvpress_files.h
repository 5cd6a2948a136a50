// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// kvpress's ExpectedAttentionStats (NVIDIA/kvpress,
// kvpress/presses/expected_attention_with_stats.py) out of a dump of queries: mean and covariance
// of every query head before the rotary embedding, which a dump's queries have behind them and
// which is turned back here. Artifacts hold second moments of KV heads behind it, which is
// something else.
#pragma once

#include <cstdint>
#include <filesystem>

namespace oscar {

inline constexpr int64_t kKvpressSinks = 4;  // first tokens of a sequence that are left out

// Writes <output>/model.safetensors with query_mean [num_layers, num_heads, head_dim] and query_cov
// [num_layers, num_heads, head_dim, head_dim], config.json and launch.txt. Throws InputError where
// layers are missing or differ, and for latent attention.
void WriteKvpressStats(const std::filesystem::path& dump, const std::filesystem::path& output);

}  // namespace oscar
