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
#include <optional>

#include "export/artifact/artifact_reader.h"
#include "export/artifact/imported_artifact.h"

namespace oscar {

inline constexpr int64_t kKvpressSinks = 4;  // first tokens of a sequence that are left out

// Writes <output>/model.safetensors with query_mean [num_layers, num_heads, head_dim] and query_cov
// [num_layers, num_heads, head_dim, head_dim], config.json and launch.txt. Throws InputError where
// layers are missing or differ, and for latent attention.
void WriteKvpressStats(const std::filesystem::path& dump, const std::filesystem::path& output);

// A directory as somebody published it, and out again with the same values. Nothing for a directory
// without query_mean and query_cov. Throw InputError where the two do not fit each other or
// config.json, and for artifacts that hold none.
std::optional<ImportedFiles> ImportedKvpressStats(const std::filesystem::path& directory);
void WriteImportedKvpressStats(const Artifact& artifact, const std::filesystem::path& output);

}  // namespace oscar
