// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/mla_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "capture/files/atomic_file.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/rotation_file.h"
#include "export/formats/sglang_pair.h"  // SameBits
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Whether any layer has a field. The reader needs a field on every layer or on none.
struct FolderFields {
  bool q_rotation, mean;
  bool bare() const { return !q_rotation && !mean; }
};

FolderFields MlaFieldsOf(const MlaFolder& folder) {
  const auto any = [&](auto has) { return std::ranges::any_of(folder.layers, has); };
  return {any([](const MlaFolderLayer& layer) { return layer.q_rotation != nullptr; }),
          any([](const MlaFolderLayer& layer) { return layer.mean != nullptr; })};
}

FloatTensorPtr NoLatentMean(const MlaFolderLayer& layer) {
  const int64_t rank = layer.rotation->shape.back();
  return std::make_shared<const FloatTensor>(
      FloatTensor{{rank}, std::vector<float>(static_cast<size_t>(rank), 0.0F)});
}

// Fills in the fields that other layers have, with values that have no effect.
MlaFolderLayer FilledLayer(MlaFolderLayer layer, const FolderFields& fields) {
  if (fields.q_rotation && !layer.q_rotation) layer.q_rotation = layer.rotation;
  if (fields.mean && !layer.mean) layer.mean = NoLatentMean(layer);
  return layer;
}

PtOut MlaFileValue(const MlaFolderLayer& layer, const FolderFields& fields) {
  if (fields.bare()) return layer.rotation;
  PtOutDict entry{{PtKey("rotation"), layer.rotation}};
  if (layer.q_rotation) entry.emplace_back("q_rotation", layer.q_rotation);
  if (layer.mean) entry.emplace_back("mean", layer.mean);
  entry.emplace_back("transform", PtFromJson({{"latent", "joint"},
                                              {"centered", fields.mean},
                                              {"orthogonal", !fields.q_rotation}}));
  return entry;
}

std::string MlaLaunchText(const SglangServing& serving, const std::filesystem::path& folder,
                          std::string_view model) {
  return fmt::format(
      "# Clip ratios do not apply, because this cache does not clip.\n"
      "SGLANG_ENABLE_MIXED_KV_WINDOWS=1 \\\n"
      "SGLANG_OSCAR_MLA_KV_ROTATION_PATH={} \\\n"
      "SGLANG_OSCAR_MLA_KV_GROUP_SIZE={} \\\n"
      "SGLANG_OSCAR_MLA_KV_REAL_KERNEL=1 \\\n"
      "SGLANG_MIXED_KV_PREFIX_TOKENS={} \\\n"
      "SGLANG_MIXED_KV_RECENT_TOKENS={} \\\n"
      "python -m sglang.launch_server --model-path {} --kv-cache-dtype bfloat16\n",
      ShellWord(std::filesystem::absolute(folder).string()), serving.quant_group_size,
      serving.sink_tokens, serving.recent_tokens, ShellWord(model));
}

void CheckLayersReadBack(const RotationFile& read, const std::vector<MlaFolderLayer>& layers) {
  bool same = read.layers.size() == layers.size();
  for (size_t i = 0; same && i < layers.size(); ++i) {
    same = read.layers[i].layer_id == layers[i].layer_id &&
           SameBits(read.layers[i].rotation, layers[i].rotation) &&
           SameBits(read.layers[i].q_rotation, layers[i].q_rotation) &&
           SameBits(read.layers[i].mean, layers[i].mean);
  }
  if (!same) {
    throw ResourceError(
        fmt::format("{}: differs from the written data when it is read back; check the disk",
                    read.path.string()));
  }
}

}  // namespace

void WriteMlaFolder(const std::filesystem::path& out, const MlaFolder& folder) {
  if (folder.layers.empty()) throw InputError("the artifact has no layers to export");
  const FolderFields fields = MlaFieldsOf(folder);
  AtomicDirectory directory(out);
  std::vector<MlaFolderLayer> layers;
  for (const MlaFolderLayer& layer : folder.layers) {
    layers.push_back(FilledLayer(layer, fields));
    const std::string stem = fmt::format("layer_{}", layer.layer_id);
    WritePt(directory.staging() / (stem + ".pt"), MlaFileValue(layers.back(), fields), stem);
  }
  std::ranges::sort(layers, {}, &MlaFolderLayer::layer_id);
  CheckLayersReadBack(OpenMlaFolder(directory.staging()), layers);
  const std::string model = LaunchModel(folder.calibration);
  WriteFileAtomically(directory.staging() / "launch.txt",
                      LaunchHead(SglangServer().name, model, {}) +
                          MlaLaunchText(folder.serving, out, LaunchPath(folder.calibration)));
  directory.Commit();
}

}  // namespace oscar
