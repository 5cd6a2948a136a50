// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The file that KVTC (arXiv 2511.01815) is calibrated by in the SGLang fork jfckm/sglang-kvtc: per
// worker and side a mean, principal components of all its layers' and heads' channels together
// (keys before the rotary embedding), and for each ratio the groups of components and their types.
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
#include <map>
#include <string>
#include <vector>

#include "export/formats/pt/pt_file.h"

namespace oscar {

struct KvtcGroup {
  int64_t components = 0;
  std::string type;
  bool operator==(const KvtcGroup&) const = default;
};
struct KvtcSide {
  FloatTensorPtr mu, basis;
  std::map<std::string, std::vector<KvtcGroup>> quant;  // by ratio
};
struct KvtcFile {
  std::map<std::string, KvtcSide> keys, values;  // by worker
};

bool MatchesKvtc(const PtValue& root);
// Throws InputError naming file, side and worker where the loader would, or would misread.
KvtcFile ReadKvtcFile(const PtFile& file);
void WriteKvtcFile(const std::filesystem::path& path, const KvtcFile& file);

// Throws InputError naming `where` unless groups are of those types and of components that exist.
void CheckKvtcGroups(const std::vector<KvtcGroup>& groups, int64_t rank, const std::string& where);

}  // namespace oscar
