// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of scales among the tensors. What is said of vLLM and SGLang: kv_cache.py of either's
// layers/quantization, whose parameters are -1 until a scale is loaded and 1 where none was.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "export/served/found.h"

namespace oscar {
namespace {

// Methods whose attention has no parameters for scales.
constexpr std::array<std::string_view, 7> kWithoutCache = {
    "gptq", "awq", "gptq_marlin", "awq_marlin", "mxfp4", "bitsandbytes", "auto-round"};

const CacheRecipe* OfWeights(const ServedDirectory& at) {
  return at.recipes.empty() ? nullptr : &at.recipes.front();
}

bool OfMethodWithout(const ServedView& view) {
  const CacheRecipe* recipe = OfWeights(view.at);
  if (recipe == nullptr) return false;
  if (view.runtime == kServedTrtllm)  // not by config.json's method alone
    return std::ranges::none_of(view.at.recipes,
                                [](const CacheRecipe& r) { return r.method == "modelopt"; });
  return std::ranges::find(kWithoutCache, recipe->method) != kWithoutCache.end();
}

std::string AllOf(const ServedDirectory& at) {
  return NamingScales(at.scales, [](const StoredScale&) { return true; });
}

// Of what arrives, by layer.
struct Sides {
  const StoredScale *k = nullptr, *v = nullptr;
};
std::map<int64_t, Sides> ByLayer(const ServedView& view) {
  std::map<int64_t, Sides> layers;
  for (const StoredScale* scale : view.loaded) {
    Sides& sides = layers[scale->layer_id];
    if (scale->side != 'v') sides.k = scale;
    if (scale->side != 'k') sides.v = scale;
  }
  return layers;
}

template <typename Predicate>
std::string AnyValue(const ServedView& view, const Predicate& is) {
  return NamingScales(
      view.loaded, [&](const StoredScale& scale) { return std::ranges::any_of(scale.values, is); });
}

int64_t Count(const StoredScale& scale) {
  int64_t count = 1;
  for (const int64_t size : scale.shape) count *= size;
  return count;
}

int64_t HeadsOf(const ServedDirectory& at, const StoredScale& scale) {
  const ServedLayer* layer = at.Find(scale.layer_id);
  return layer == nullptr ? 0 : layer->num_kv_heads;
}

}  // namespace

std::string ScalesWithoutMethod(const ServedView& view) {
  return view.at.recipes.empty() ? AllOf(view.at) : "";
}

std::string ScalesBesideOtherMethod(const ServedView& view) {
  if (view.at.scales.empty() || !OfMethodWithout(view)) return {};
  return fmt::format("{} (weights of {})", AllOf(view.at), Quoted(OfWeights(view.at)->method, 40));
}

std::string ScalesNotDeclared(const ServedView& view) {
  if (view.at.recipes.empty() || view.at.Recipe() != nullptr || OfMethodWithout(view)) return {};
  return OfWeights(view.at)->method == "fp8" ? "" : AllOf(view.at);
}

std::string ScalesOfFloat8(const ServedView& view) {
  const CacheRecipe* recipe = OfWeights(view.at);
  return recipe != nullptr && recipe->method == "fp8" ? AllOf(view.at) : "";
}

std::string ScalesOtherwiseNamed(const ServedView& view) {
  if (view.runtime == kServedVllm && LoadsByOwnName(view.at)) return {};
  return NamingScales(view.at.scales, [&](const StoredScale& scale) {
    return (scale.spelling->readers & view.runtime) == 0;
  });
}

std::string ScalesDroppedByFamily(const ServedView& view) {
  if (!LoadsByOwnName(view.at)) return {};
  return NamingScales(view.at.scales, [](const StoredScale& scale) {
    return scale.spelling->k != ".attn.k_scale";
  });
}

std::string ScalesOfOtherModule(const ServedView& view) {
  if (!view.at.has_weights) return {};
  return NamingScales(view.at.scales, [&](const StoredScale& scale) {
    const bool cached = view.at.layers.empty() || view.at.Find(scale.layer_id) != nullptr;
    return cached && !view.at.modules.contains(scale.module);
  });
}

std::string ScalesOfOtherLayer(const ServedView& view) {
  if (view.at.layers.empty()) return {};
  return NamingScales(view.at.scales, [&](const StoredScale& scale) {
    return view.at.Find(scale.layer_id) == nullptr;
  });
}

std::string ScalesOfSomeLayers(const ServedView& view) {
  const std::map<int64_t, Sides> layers = ByLayer(view);
  std::vector<int64_t> missing;
  for (const ServedLayer& layer : view.at.layers)
    if (!layers.contains(layer.layer_id)) missing.push_back(layer.layer_id);
  return layers.empty() ? "" : NamingLayers(missing);
}

std::string ScalesOfOneSide(const ServedView& view) {
  std::vector<std::string> alone;
  for (const auto& [layer_id, sides] : ByLayer(view)) {
    if ((sides.k == nullptr) != (sides.v == nullptr))
      alone.push_back((sides.k == nullptr ? sides.v : sides.k)->name);
  }
  return Naming(alone);
}

std::string UnitScales(const ServedView& view) {
  std::vector<std::string> units;
  const auto is_unit = [](const StoredScale* scale) {
    return scale != nullptr && !scale->values.empty() &&
           std::ranges::all_of(scale->values, [](float x) { return x == 1; });
  };
  for (const auto& [layer_id, sides] : ByLayer(view))
    if (is_unit(sides.k) && is_unit(sides.v)) units.push_back(sides.k->name);
  return Naming(units);
}

std::string ScalesNotPositive(const ServedView& view) {
  return AnyValue(view, [](float x) { return x <= 0; });
}

std::string ScalesNotFinite(const ServedView& view) {
  return AnyValue(view, [](float x) { return !std::isfinite(x); });
}

std::string ScalesNotFloats(const ServedView& view) {
  return NamingScales(view.loaded, [](const StoredScale& scale) { return scale.values.empty(); });
}

std::string ScalesOfOtherHeads(const ServedView& view) {
  return NamingScales(view.loaded, [&](const StoredScale& scale) {
    const int64_t heads = HeadsOf(view.at, scale);
    return heads > 0 && Count(scale) != 1 && Count(scale) != heads;
  });
}

std::string ScalesPerHead(const ServedView& view) {
  return NamingScales(view.loaded, [&](const StoredScale& scale) {
    return Count(scale) > 1 && Count(scale) == HeadsOf(view.at, scale);
  });
}

std::string ScalesOfOtherStrategy(const ServedView& view) {
  const CacheRecipe* recipe = view.at.Recipe();
  if (recipe == nullptr || !recipe->scheme.is_object()) return {};
  const bool per_head = recipe->scheme.value("strategy", Json()) == "attn_head";
  return NamingScales(view.loaded, [&](const StoredScale& scale) {
    const int64_t heads = HeadsOf(view.at, scale);
    return heads > 1 && (Count(scale) == heads) != per_head &&
           (Count(scale) == 1 || Count(scale) == heads);
  });
}

std::string ScalesOutsideIndex(const ServedView& view) {
  std::vector<std::string> files;
  for (const StoredScale& scale : view.at.scales)
    if (!scale.indexed && std::ranges::find(files, scale.file) == files.end())
      files.push_back(scale.file);
  return Naming(files);
}

std::string ScalesOnlyInIndex(const ServedView& view) {
  std::vector<std::string> names;
  for (const auto& [tensor, file] : view.at.weight_map) {
    if (!IsCacheScaleName(tensor)) continue;
    const bool there = std::ranges::any_of(view.at.scales, [&](const StoredScale& scale) {
      return scale.name == tensor && scale.file == file;
    });
    if (!there) names.push_back(tensor);
  }
  return Naming(names);
}

std::string ScalesTwice(const ServedView& view) {
  std::map<std::pair<int64_t, char>, const StoredScale*> seen;
  return NamingScales(view.loaded, [&](const StoredScale& scale) {
    const auto [at, is_new] = seen.emplace(std::pair(scale.layer_id, scale.side), &scale);
    return !is_new && at->second->values != scale.values;
  });
}

std::string ScalesByVariable(const ServedView& view) {
  return NamingScales(view.loaded, [](const StoredScale&) { return true; });
}

}  // namespace oscar
