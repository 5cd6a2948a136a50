// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that OSCAR's SGLang loads: a shared pair (format_version 1), and a per-head pair
// (format_version 2) if every layer has per-head rotations. They are in separate folders, because a
// server loads any pair that it finds in a folder.
//
//   <out>/k_rotation_<k objective>.pt   k_rotation_qqt_r_h_pbr.pt for the default composition
//   <out>/v_rotation_sst_<composition>.pt
//   <out>/perhead/k_rotation_perhead.pt, v_rotation_perhead.pt
//   <out>/launch.txt                    environment and flags of the server
//
// Trap: the V file is called sst for every value target, because servers and scripts look for that
// name. The true target is in its fields `objective` and `value_target`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"
#include "export/formats/rotation_pair.h"

namespace oscar {

// One side of a layer. Absent tensors are null.
struct SglangSide {
  FloatTensorPtr shared;              // [d, d], used as x * R
  FloatTensorPtr shared_eigenvalues;  // [d], ascending
  FloatTensorPtr per_head;            // [num_kv_heads, d, d], for all heads of the model
};

struct SglangLayer {
  int64_t layer_id = 0;  // the checkpoint's own number
  SglangSide k, v;
};

// Settings of the server. An export takes them from the artifact.
struct SglangServing {
  double k_clip_ratio = 0.96, v_clip_ratio = 0.92;  // 0 turns clipping off
  int64_t quant_group_size = 128;                   // values per scale
  int64_t sink_tokens = 64, recent_tokens = 256;    // stored in high precision
};

struct SglangExport {
  std::vector<SglangLayer> layers;
  std::string composition = "r_h_pbr";    // a name in linalg/rotation.h
  std::string value_target = "diagonal";  // or "attention_output"
  Json calibration;                       // the block in both files; null for none
  SglangServing serving;
};

// A server that loads a pair of .pt files, and the command that starts it. The default is SGLang.
struct PairServer {
  std::string_view name;  // its usual name
  // Returns the command that starts the server with the pair. The paths in it must be absolute.
  std::string (*launch)(const SglangServing& serving, const std::filesystem::path& k_path,
                        const std::filesystem::path& v_path, std::string_view model);
  std::vector<std::string> notes = {};  // lines on the server for the launch script
};
const PairServer& SglangServer();

std::string SglangKObjective(const SglangExport& rotations);  // like "qqt_r_h_pbr"
std::string SglangVObjective(const SglangExport& rotations);  // "sst_...", "attention_output_..."

// Writes the directory `out`. Every file is read back with OpenRotationPair and compared bit for
// bit before the directory is published. Throws InputError if `out` exists, a layer lacks its
// shared pair, or only some layers have per-head rotations. Throws NumericalError if a matrix is
// not orthogonal, ResourceError if writing fails.
void WriteSglang(const std::filesystem::path& out, const SglangExport& rotations,
                 const PairServer& server = SglangServer());

// Quotes a word for a POSIX shell, if necessary.
std::string ShellWord(std::string_view text);

// Returns the model's name for the launch script, taken from a `calibration` block.
std::string LaunchModel(const Json& calibration);
// Returns the path from which a server loads the model. An id of the Hugging Face Hub stays as it
// is. A directory becomes /PATH/TO/ and its name, because no file records its full path.
std::string LaunchPath(const Json& calibration);
// Returns the first lines of a launch script, which name the server and the model. Each of `notes`
// becomes a comment.
std::string LaunchHead(std::string_view server, const std::string& model,
                       const std::vector<std::string>& notes);

}  // namespace oscar
