// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that OSCAR's SGLang loads: the shared pair (format_version 1) and the per-head pair (2), in
// separate folders because a server picks any pair that it finds in one.
//
//   <out>/k_rotation_<k objective>.pt   k_rotation_qqt_r_h_pbr.pt for the default composition
//   <out>/v_rotation_sst_<composition>.pt
//   <out>/perhead/k_rotation_perhead.pt, v_rotation_perhead.pt   if every layer has them
//   <out>/launch.txt                    environment and flags of the server
//
// Trap: the V file is called sst whatever the value target, since that is the name consumers and
// scripts look for; the true target is in its `objective` and in the extra field `value_target`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"
#include "export/formats/rotation_pair.h"

namespace oscar {

// K or V of one layer. Absent tensors are null.
struct SglangSide {
  FloatTensorPtr shared;              // [d, d], used as x * R
  FloatTensorPtr shared_eigenvalues;  // [d], ascending
  FloatTensorPtr per_head;            // [num_kv_heads, d, d], all heads of the model
};

struct SglangLayer {
  int64_t layer_id = 0;  // the checkpoint's own number
  SglangSide k, v;
};

// The server's settings; the artifact records their values.
struct SglangServing {
  double k_clip_ratio = 0.96, v_clip_ratio = 0.92;  // 0 switches clipping off
  int64_t quant_group_size = 128;                   // values per scale
  int64_t sink_tokens = 64, recent_tokens = 256;    // kept in high precision
};

struct SglangExport {
  std::vector<SglangLayer> layers;
  std::string composition = "r_h_pbr";    // name of linalg/rotation.h
  std::string value_target = "diagonal";  // or "attention_output"
  Json calibration;                       // the block both files carry; null for none
  SglangServing serving;
};

// A server that loads a pair of .pt files, and its settings. The default is SGLang.
struct PairServer {
  std::string_view name;  // as people call it
  // A command that starts it with the pair; the paths in it are absolute.
  std::string (*launch)(const SglangServing& serving, const std::filesystem::path& k_path,
                        const std::filesystem::path& v_path, std::string_view model);
  std::vector<std::string> notes = {};  // about the server; lines of the launch script
};
const PairServer& SglangServer();

std::string SglangKObjective(const SglangExport& rotations);  // "qqt_r_h_pbr"
std::string SglangVObjective(const SglangExport& rotations);  // "sst_...", "attention_output_..."

// Writes the directory `out`, reads every file back with OpenRotationPair, compares bit for bit,
// and only then publishes it under its name. Throws InputError if `out` exists, a layer lacks its
// shared pair or only some have per-head ones, or a matrix is not orthogonal; ResourceError from
// the disk.
void WriteSglang(const std::filesystem::path& out, const SglangExport& rotations,
                 const PairServer& server = SglangServer());

// Quotes a word for a shell's command line if necessary.
std::string ShellWord(std::string_view text);

// The launch script's name for the model whose `calibration` block a file carries.
std::string LaunchModel(const Json& calibration);
// The same for a server that loads the model: an id of the Hugging Face Hub stays as it is. A
// directory becomes /PATH/TO/ and its name, because no file carries its path.
std::string LaunchPath(const Json& calibration);
// The first lines of a launch script: the server and model, then each line of `notes` as a comment.
std::string LaunchHead(std::string_view server, const std::string& model,
                       const std::vector<std::string>& notes);

}  // namespace oscar
