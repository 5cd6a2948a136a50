// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Source of names and fields: ../shared/reference/upstream.md sections 1.1, 1.2 and 2. Trap:
// version 2 carries no eigenvalues upstream, so ours does not either; the artifact keeps them.
#include "export/formats/sglang.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "capture/files/atomic_file.h"
#include "export/formats/pt_writer.h"
#include "linalg/error.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

constexpr const char* kPerHeadFolder = "perhead";

// One file to be: which tensors of a layer it takes.
struct FilePlan {
  std::filesystem::path name;  // relative to the exported directory
  int64_t version = 1;
  SglangSide SglangLayer::*side = nullptr;
  FloatTensorPtr SglangSide::*rotation = nullptr;
  std::string objective;
};

bool HasPerHead(const SglangExport& rotations) {
  const bool first = rotations.layers.front().k.per_head != nullptr;
  for (const SglangLayer& layer : rotations.layers) {
    if ((layer.k.per_head != nullptr) != first || (layer.v.per_head != nullptr) != first) {
      throw InputError(
          fmt::format("layer {} differs from the first in having per-head rotations; "
                      "export all layers per head, or none",
                      layer.layer_id));
    }
    for (const SglangSide* side : {&layer.k, &layer.v}) {
      if (!side->shared || !side->shared_eigenvalues) {
        throw InputError(
            fmt::format("layer {} lacks a shared rotation or its eigenvalues, which "
                        "version 1 files hold",
                        layer.layer_id));
      }
    }
  }
  return first;
}

PtOut FileValue(const FilePlan& plan, const SglangExport& rotations) {
  PtOutDict layers;
  for (const SglangLayer& layer : rotations.layers) {
    const SglangSide& side = layer.*plan.side;
    PtOutDict entry{{PtKey("layer_id"), layer.layer_id}, {PtKey("rotation"), side.*plan.rotation}};
    if (plan.version == 1) entry.emplace_back("eigenvalues", side.shared_eigenvalues);
    layers.emplace_back(layer.layer_id, std::move(entry));
  }
  PtOutDict top{{PtKey("format_version"), plan.version},
                {PtKey("objective"), plan.objective},
                {PtKey("source_grouping"), plan.version == 1 ? "layer" : "per_kv_head"}};
  if (plan.side == &SglangLayer::v) top.emplace_back("value_target", rotations.value_target);
  if (!rotations.calibration.is_null()) {
    top.emplace_back("calibration", PtFromJson(rotations.calibration));
  }
  top.emplace_back("layers", std::move(layers));
  return top;
}

bool SameBits(const FloatTensorPtr& a, const FloatTensorPtr& b) {
  return a && b && a->shape == b->shape && a->values.size() == b->values.size() &&
         std::memcmp(a->values.data(), b->values.data(), a->values.size() * sizeof(float)) == 0;
}

void CheckReadBack(const RotationFile& read, const FilePlan& plan, const SglangExport& rotations) {
  const auto expect = [&](bool holds, std::string_view what) {
    if (!holds) {
      throw ResourceError(
          fmt::format("{}: {} read back differs from what was written; check the "
                      "disk",
                      read.path.string(), what));
    }
  };
  expect(read.layers.size() == rotations.layers.size(), "the number of layers");
  expect(read.objective == plan.objective && read.format_version == plan.version &&
             read.calibration == rotations.calibration,
         "the header");
  for (size_t i = 0; i < read.layers.size(); ++i) {
    const SglangSide& side = rotations.layers[i].*plan.side;
    expect(read.layers[i].layer_id == rotations.layers[i].layer_id, "a layer id");
    expect(SameBits(read.layers[i].rotation, side.*plan.rotation), "a rotation");
    expect(plan.version != 1 || SameBits(read.layers[i].eigenvalues, side.shared_eigenvalues),
           "an eigenvalue");
  }
}

void WritePair(const std::filesystem::path& directory, const FilePlan& k, const FilePlan& v,
               const SglangExport& rotations) {
  for (const FilePlan* plan : {&k, &v}) {
    WritePt(directory / plan->name, FileValue(*plan, rotations), plan->name.stem().string());
  }
  const RotationPair pair = OpenRotationPair(directory / k.name, directory / v.name);
  CheckReadBack(pair.k, k, rotations);
  CheckReadBack(pair.v, v, rotations);
}

// For a POSIX shell.
std::string ShellWord(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+=:,@", c) != nullptr;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string SglangKObjective(const SglangExport& rotations) {
  return "qqt_" + rotations.composition;
}

std::string SglangVObjective(const SglangExport& rotations) {
  return (rotations.value_target == "diagonal" ? "sst" : rotations.value_target) + "_" +
         rotations.composition;
}

void WriteSglang(const std::filesystem::path& out, const SglangExport& rotations) {
  if (rotations.layers.empty()) throw InputError("no layers to export");
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
  WritePair(directory.staging(), {k_name, 1, &SglangLayer::k, &SglangSide::shared, k_objective},
            {v_name, 1, &SglangLayer::v, &SglangSide::shared, v_objective}, rotations);
  if (per_head) {
    const std::filesystem::path folder = kPerHeadFolder;
    std::filesystem::create_directory(directory.staging() / folder);
    WritePair(
        directory.staging(),
        {folder / "k_rotation_perhead.pt", 2, &SglangLayer::k, &SglangSide::per_head, k_objective},
        {folder / "v_rotation_perhead.pt", 2, &SglangLayer::v, &SglangSide::per_head, v_objective},
        rotations);
  }
  WriteFileAtomically(directory.staging() / "launch.txt",
                      SglangLaunchText(rotations.serving, out / k_name, out / v_name, "MODEL"));
  directory.Commit();
}

std::string SglangLaunchText(const SglangServing& serving, const std::filesystem::path& k_path,
                             const std::filesystem::path& v_path, std::string_view model) {
  // Absorbing R_V into the weights is off: it is wrong for per-head files and for gated attention.
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
      ShellWord(k_path.string()), ShellWord(v_path.string()), serving.k_clip_ratio,
      serving.v_clip_ratio, serving.sink_tokens, serving.recent_tokens, ShellWord(model),
      serving.quant_group_size);
}

}  // namespace oscar
