// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVTC's calibration (arXiv 2511.01815) for the SGLang fork jfckm/sglang-kvtc, out of a dump: per
// worker and side a mean, principal components of all its layers' and heads' channels together
// (keys before the rotary embedding), and for each ratio the groups of components and their types.
// Artifacts hold moments of single KV heads, which is something else: components across layers need
// the tokens themselves.
//
//   kvtc.pt  {"version": "v3-worker-quant",
//             "keys" | "values": {"tp_<i>_pp_<j>": {
//                "mu": [p] f32, "basis": [p, rank] f32, x ~ mu + ((x - mu) basis) basis^T
//                "quant": {"<ratio>": [[components, "float32"|"bfloat16"|"int8"|"int4"], ...]}}}}
//
// p = layers heads head_dim of the worker, in this order. Components behind the last group have no
// bits. Source: python/sglang/srt/mem_cache/kvtc_quant.py of the fork (KVTCArtifactLoader).
#pragma once

#include <cstdint>
#include <filesystem>

namespace oscar {

inline constexpr int64_t kKvtcSinks = 4, kKvtcRecent = 128;  // tokens that stay as they are

struct KvtcWorkers {
  int64_t tp = 1, pp = 1;  // heads and layers are divided among them
};

// Writes <output>/kvtc.pt and launch.txt. Throws InputError for latent attention, layers that are
// missing or differ, workers that do not divide them, and dumps with too few tokens.
void WriteKvtc(const std::filesystem::path& dump, const KvtcWorkers& workers,
               const std::filesystem::path& output);

}  // namespace oscar
