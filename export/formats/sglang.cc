// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Per-head files (version 2) have no eigenvalues, as upstream's have none. The artifact has them.
#include "export/formats/sglang.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "capture/files/atomic_file.h"
#include "export/formats/sglang_pair.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

constexpr const char* kPerHeadFolder = "perhead";

bool HasPerHead(const SglangExport& rotations) {
  const bool first = rotations.layers.front().k.per_head != nullptr;
  for (const SglangLayer& layer : rotations.layers) {
    if ((layer.k.per_head != nullptr) != first || (layer.v.per_head != nullptr) != first) {
      throw InputError(
          fmt::format("only some layers have per-head rotations (layer {} differs from the first); "
                      "export all layers per head, or none",
                      layer.layer_id));
    }
    for (const SglangSide* side : {&layer.k, &layer.v}) {
      if (!side->shared || !side->shared_eigenvalues) {
        throw InputError(
            fmt::format("layer {} lacks a shared rotation or its eigenvalues, which version 1 "
                        "files must contain",
                        layer.layer_id));
      }
    }
  }
  return first;
}

std::string SglangLaunch(const SglangServing& serving, const std::filesystem::path& k_path,
                         const std::filesystem::path& v_path, std::string_view model) {
  // ABSORB_V_ROTATION=0 keeps R_V out of the weights, because absorbing it is wrong for per-head
  // files and for gated attention.
  return fmt::format(
      "SGLANG_ENABLE_MIXED_KV_WINDOWS=1 \\\n"
      "SGLANG_OSCAR_K_ROTATION_PATH={} \\\n"
      "SGLANG_OSCAR_V_ROTATION_PATH={} \\\n"
      "SGLANG_OSCAR_K_CLIP_RATIO={} \\\n"
      "SGLANG_OSCAR_V_CLIP_RATIO={} \\\n"
      "SGLANG_OSCAR_ABSORB_V_ROTATION=0 \\\n"
      "SGLANG_MIXED_KV_PREFIX_TOKENS={} \\\n"
      "SGLANG_MIXED_KV_RECENT_TOKENS={} \\\n"
      "python -m sglang.launch_server --model-path {} --kv-cache-dtype int2 "
      "--kv-cache-quant-group-size {} --prefill-attention-backend fa3 "
      "--decode-attention-backend triton\n",
      ShellWord(std::filesystem::absolute(k_path).string()),
      ShellWord(std::filesystem::absolute(v_path).string()), serving.k_clip_ratio,
      serving.v_clip_ratio, serving.sink_tokens, serving.recent_tokens, ShellWord(model),
      serving.quant_group_size);
}

// Makes a file of the shared pair (version 1) or the per-head pair (version 2).
SglangFile File(const std::filesystem::path& name, bool per_head, SglangSide SglangLayer::*side,
                const std::string& objective, const SglangExport& rotations) {
  SglangFile file{.name = name,
                  .version = per_head ? 2 : 1,
                  .objective = objective,
                  .source_grouping = per_head ? "per_kv_head" : "layer",
                  .value_target = side == &SglangLayer::v ? rotations.value_target : "",
                  .transform = {},
                  .calibration = rotations.calibration,
                  .layers = {}};
  for (const SglangLayer& layer : rotations.layers) {
    const SglangSide& of = layer.*side;
    file.layers.push_back(
        {layer.layer_id,
         {{"rotation", &RotationLayer::rotation, per_head ? of.per_head : of.shared},
          {"eigenvalues", &RotationLayer::eigenvalues,
           per_head ? nullptr : of.shared_eigenvalues}}});
  }
  return file;
}

}  // namespace

std::string SglangKObjective(const SglangExport& rotations) {
  return "qqt_" + rotations.composition;
}

std::string SglangVObjective(const SglangExport& rotations) {
  return (rotations.value_target == "diagonal" ? "sst" : rotations.value_target) + "_" +
         rotations.composition;
}

const PairServer& SglangServer() {
  static const PairServer server = {"SGLang", SglangLaunch};
  return server;
}

void WriteSglang(const std::filesystem::path& out, const SglangExport& rotations,
                 const PairServer& server) {
  if (rotations.layers.empty()) throw InputError("the artifact has no layers to export");
  if (rotations.value_target != "diagonal" && rotations.value_target != "attention_output") {
    throw InputError(fmt::format("value target '{}', expected 'diagonal' or 'attention_output'",
                                 rotations.value_target));
  }
  CompositionFromName(rotations.composition);
  const bool per_head = HasPerHead(rotations);
  AtomicDirectory directory(out);
  const std::string k_objective = SglangKObjective(rotations);
  const std::string v_objective = SglangVObjective(rotations);
  const std::string k_name = fmt::format("k_rotation_{}.pt", k_objective);
  const std::string v_name = fmt::format("v_rotation_sst_{}.pt", rotations.composition);
  WriteSglangPair(directory.staging(), File(k_name, false, &SglangLayer::k, k_objective, rotations),
                  File(v_name, false, &SglangLayer::v, v_objective, rotations));
  if (per_head) {
    const std::filesystem::path folder = kPerHeadFolder;
    std::filesystem::create_directory(directory.staging() / folder);
    WriteSglangPair(
        directory.staging(),
        File(folder / "k_rotation_perhead.pt", true, &SglangLayer::k, k_objective, rotations),
        File(folder / "v_rotation_perhead.pt", true, &SglangLayer::v, v_objective, rotations));
  }
  const std::string model = LaunchModel(rotations.calibration);
  std::vector<std::string> notes = server.notes;
  if (per_head) {
    notes.insert(
        notes.end(),
        {"perhead/ has a rotation for each KV head (format 2); a server that supports them",
         "loads its two files in place of the two below."});
  }
  WriteFileAtomically(directory.staging() / "launch.txt",
                      LaunchHead(server.name, model, notes) +
                          server.launch(rotations.serving, out / k_name, out / v_name,
                                        LaunchPath(rotations.calibration)));
  directory.Commit();
}

std::string ShellWord(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+=:,@", c) != nullptr;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string LaunchModel(const Json& calibration) {
  const Json model = calibration.is_object() ? calibration.value("model", Json()) : Json();
  std::string id = model.is_object() ? model.value("id", "") : "";
  for (char& c : id)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';  // a comment has only one line
  return id.empty() ? "MODEL" : id;
}

std::string LaunchPath(const Json& calibration) {
  const std::string model = LaunchModel(calibration);
  return model.find('/') == model.npos ? "/PATH/TO/" + model : model;
}

std::string LaunchHead(std::string_view server, const std::string& model,
                       const std::vector<std::string>& notes) {
  std::string text =
      fmt::format("#!/bin/sh\n# Starts {} with the rotations in this directory, of {}.\n", server,
                  ShellWord(model));
  for (const std::string& note : notes) text += "# " + note + "\n";
  return text;
}

}  // namespace oscar
