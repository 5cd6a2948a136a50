// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of oscar-calibrate --auto as files for OSCAR's SGLang: version 3 (October
// tree), or version 1 if the choice is one orthogonal matrix per layer and side.
//
//   <out>/k_rotation_oscar2_auto.pt, v_rotation_oscar2_auto.pt   version 3
//   <out>/k_rotation_auto.pt, v_rotation_auto.pt                 version 1
//   <out>/launch.txt                                             environment and flags
//
// The loader requires a field on every layer or on none, and matrices that are all shared or all
// per head. If only some layers have a field, the others get values without effect: q_rotation =
// rotation, k_mean = 0, or one matrix repeated for each head.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"
#include "export/formats/sglang.h"  // SglangServing

namespace oscar {

// Absent tensors are null.
struct SglangChoiceLayer {
  int64_t layer_id = 0;              // the checkpoint's own number
  FloatTensorPtr k;                  // [d, d] or [num_kv_heads, d, d]; stored: (k - k_mean) R
  FloatTensorPtr q;                  // R^-T in the shape of k, for queries; null: R itself
  FloatTensorPtr k_mean;             // [num_kv_heads, d]
  FloatTensorPtr v;                  // [d, d] or [num_kv_heads, d, d]
  int64_t num_kv_heads = 0;          // 0: unknown, for imported files with one matrix for all heads
  double k_clip = 1, v_clip = 1;     // ratios, if the runtime has one for each layer
  FloatTensorPtr k_pair_scale = {};  // [num_kv_heads, d], folded
  FloatTensorPtr o = {};             // R^-T in the shape of v, undoes values
  FloatTensorPtr k_eigenvalues = {}, v_eigenvalues = {};  // only from imported files
};

struct SglangChoice {
  std::vector<SglangChoiceLayer> layers;
  std::string key_transform;  // "oscar", "pair_scaled", "balanced"; "mixed" if layers differ
  bool folded = false;        // only for a folded copy of the checkpoint
  Json calibration;           // the block in both files; null for none
  SglangServing serving;
};

enum class SglangVersion { kV1, kV3 };

// Returns matrices of shape [num_kv_heads, d, d]. A single matrix is repeated for each head; throws
// InputError if the number of heads is unknown.
FloatTensorPtr MatrixPerHead(const FloatTensorPtr& matrices, int64_t num_kv_heads);

// Works like WriteSglang. Throws InputError if a layer has something that version 1 cannot hold.
void WriteSglangChoice(const std::filesystem::path& out, const SglangChoice& choice,
                       SglangVersion version, const PairServer& server = SglangServer());

}  // namespace oscar
