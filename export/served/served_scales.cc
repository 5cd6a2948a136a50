// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scales among the tensors of a checkpoint. Who loads which name: vLLM's and SGLang's
// maybe_remap_kv_scale_name (model_loader/weight_utils.py of each) and get_cache_scale of vLLM's
// quantization methods; TensorRT-LLM's load_kv_scales (tensorrt_llm/_torch/modules/linear.py),
// which sees what lies below k_proj and v_proj.
#include <algorithm>
#include <array>
#include <cstring>

#include "capture/checkpoint/safetensors.h"
#include "capture/checkpoint/stored_values.h"
#include "export/served/served_directory.h"

namespace oscar {
namespace {

constexpr unsigned kBoth = kServedVllm | kServedSglang;

// The first that a name ends with; longer ones stand before what they end with.
constexpr std::array kSpellings = {
    ScaleSpelling{".self_attn.k_proj.k_scale", ".self_attn.v_proj.v_scale", kBoth | kServedTrtllm},
    ScaleSpelling{".mixer.k_proj.k_scale", ".mixer.v_proj.v_scale", kServedVllm},
    ScaleSpelling{".qkv_proj.k_scale", ".qkv_proj.v_scale", kServedVllm},
    ScaleSpelling{".attn.k_scale", ".attn.v_scale", 0},  // the loaders put a second .attn in
    ScaleSpelling{".k_scale", ".v_scale", kBoth},
    ScaleSpelling{".kv_scale", ".kv_scale", kBoth},
    ScaleSpelling{".k_proj.output_scale", ".v_proj.output_scale", kServedVllm},
    ScaleSpelling{".k_cache.scale", ".v_cache.scale", kServedVllm},
    // What writers and readers of others have called them; nobody here reads these.
    ScaleSpelling{".k_cache_scale", ".v_cache_scale", 0},
    ScaleSpelling{".key_scale", ".value_scale", 0},
    ScaleSpelling{".k_scale_inv", ".v_scale_inv", 0},
    ScaleSpelling{".k_global_scale", ".v_global_scale", 0},
    ScaleSpelling{".kv_cache_scaling_factor", ".kv_cache_scaling_factor", 0},
};

constexpr size_t kMostValues = 4096;  // heads of a layer

// Of other stacks than the text model's, whose layers have numbers of their own.
bool OfAnotherStack(std::string_view name) {
  for (const std::string_view part : {"vision", "visual", "audio", "mtp."})
    if (name.find(part) != name.npos) return true;
  return false;
}

int64_t LastNumber(std::string_view module) {
  int64_t found = -1;
  for (size_t at = 0; at <= module.size();) {
    const size_t end = std::min(module.find('.', at), module.size());
    if (const auto id = ParseLayerId(module.substr(at, end - at))) found = *id;
    at = end + 1;
  }
  return found;
}

struct Match {
  const ScaleSpelling* spelling = nullptr;
  char side = 0;
  size_t module_size = 0;
};

Match FindSpelling(std::string_view name) {
  // ".self_attn" and ".mixer" of a spelling belong to the module.
  const auto module_size = [&](std::string_view ending) {
    const size_t inner = ending.find('.', 1);
    const bool names_module = ending.starts_with(".self_attn") || ending.starts_with(".mixer");
    return name.size() - ending.size() + (names_module ? inner : 0);
  };
  for (const ScaleSpelling& spelling : kSpellings) {
    if (name.ends_with(spelling.k))
      return {&spelling, spelling.k == spelling.v ? 'b' : 'k', module_size(spelling.k)};
    if (name.ends_with(spelling.v)) return {&spelling, 'v', module_size(spelling.v)};
  }
  return {};
}

std::vector<float> ScaleValues(const TensorView& view) {
  const bool known =
      view.dtype == DType::kBF16 || view.dtype == DType::kF16 || view.dtype == DType::kF32;
  std::vector<float> values;
  if (!known || view.data.size() > kMostValues * sizeof(float)) return values;
  for (size_t at = 0; at < view.data.size(); at += static_cast<size_t>(DTypeBytes(view.dtype)))
    values.push_back(LoadFloat(view.dtype, view.data.data() + at));
  return values;
}

}  // namespace

bool IsCacheScaleName(std::string_view tensor) {
  return !OfAnotherStack(tensor) && FindSpelling(tensor).spelling != nullptr;
}

void ReadServedScales(const std::filesystem::path& path, ServedDirectory& served) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  const std::string name_of_file = path.filename();
  const bool indexed =
      served.weight_map.empty() || std::ranges::any_of(served.weight_map, [&](const auto& entry) {
        return entry.second == name_of_file;
      });
  for (const auto& [name, info] : file.tensors()) {
    if (OfAnotherStack(name)) continue;
    const Match match = FindSpelling(name);
    if (match.spelling == nullptr) {
      served.has_weights = served.has_weights || name.ends_with(".weight");
      // "a.b.c.weight" is below a.b.c, a.b and a.
      for (size_t dot = name.rfind('.'); dot != name.npos && dot > 0;
           dot = name.rfind('.', dot - 1))
        if (!served.modules.insert(name.substr(0, dot)).second) break;
      continue;
    }
    StoredScale scale{.file = name_of_file,
                      .name = name,
                      .module = name.substr(0, match.module_size),
                      .spelling = match.spelling,
                      .side = match.side,
                      .indexed = indexed,
                      .dtype = info.dtype,
                      .shape = info.shape,
                      .values = ScaleValues(file.tensor(name))};
    scale.layer_id = LastNumber(scale.module);
    served.scales.push_back(std::move(scale));
  }
}

}  // namespace oscar
