// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/served/found.h"

#include <algorithm>
#include <map>
#include <set>

namespace oscar {
namespace {

bool ReadsName(const ServedDirectory& served, ServedRuntime runtime, const StoredScale& scale) {
  if (runtime == kServedVllm && LoadsByOwnName(served)) return scale.spelling->k == ".attn.k_scale";
  return (scale.spelling->readers & runtime) != 0;
}

constexpr unsigned kTensorReaders = kServedVllm | kServedSglang | kServedTrtllm;

}  // namespace

ServedView ViewOf(const ServedDirectory& served, ServedRuntime runtime) {
  ServedView view{.at = served, .runtime = runtime, .loaded = {}};
  if ((runtime & kTensorReaders) == 0) return view;
  for (const StoredScale& scale : served.scales) {
    if (!ReadsName(served, runtime, scale)) continue;
    if (runtime != kServedTrtllm && !scale.indexed) continue;
    if (served.has_weights && !served.modules.contains(scale.module)) continue;
    if (!served.layers.empty() && served.Find(scale.layer_id) == nullptr) continue;
    view.loaded.push_back(&scale);
  }
  return view;
}

bool ReadsAnything(const ServedView& view) {
  const ServedDirectory& at = view.at;
  const auto any_file = [&](ScaleFileKind kind) { return !at.FilesOf(kind).empty(); };
  switch (view.runtime) {
    case kServedVllm:
      if (any_file(ScaleFileKind::kMlaOuter) || !at.rotations.empty()) return true;
      break;
    case kServedSglang:
      if (any_file(ScaleFileKind::kSglang) || !at.rotations.empty()) return true;
      break;
    case kServedSglangOct:
      return !at.rotations.empty();
    case kServedTrtllm:
      break;
    case kServedLlamacpp:
      return !at.ggufs.empty();
    case kServedOnnx:
      return any_file(ScaleFileKind::kOnnxGenai);
  }
  return !at.scales.empty() || at.Recipe() != nullptr;
}

std::vector<std::string> Loaded(const ServedView& view) {
  std::vector<std::string> lines;
  const ServedDirectory& at = view.at;
  std::map<std::string_view, size_t> by_spelling;
  for (const StoredScale* scale : view.loaded) ++by_spelling[scale->spelling->k];
  for (const auto& [spelling, count] : by_spelling)
    lines.push_back(fmt::format("{} scales ({})", count, spelling.substr(1)));
  if (const CacheRecipe* recipe = at.Recipe();
      recipe != nullptr && (view.runtime & kTensorReaders) != 0)
    lines.push_back(fmt::format("{} of {}", Escaped(recipe->Algorithm(), 40), recipe->file));
  const auto files = [&](ScaleFileKind kind, ServedRuntime reader) {
    if (view.runtime != reader) return;
    for (const ScaleFile* file : at.FilesOf(kind)) lines.push_back(Escaped(file->file));
  };
  files(ScaleFileKind::kSglang, kServedSglang);
  files(ScaleFileKind::kMlaOuter, kServedVllm);
  files(ScaleFileKind::kOnnxGenai, kServedOnnx);
  if ((view.runtime & (kServedVllm | kServedSglang | kServedSglangOct)) != 0)
    for (const ServedRotations& rotation : at.rotations) lines.push_back(Escaped(rotation.file));
  if (view.runtime == kServedLlamacpp)
    for (const ServedGguf& gguf : at.ggufs) lines.push_back(Escaped(gguf.file));
  return lines;
}

std::string NamingLayers(const std::vector<int64_t>& ids) {
  if (ids.empty()) return {};
  std::vector<std::string> names;
  for (const int64_t id : ids) names.push_back(std::to_string(id));
  return (names.size() == 1 ? "layer " : "layers ") + Naming(names);
}

}  // namespace oscar
