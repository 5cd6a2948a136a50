// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of what the configuration says of the cache.
#include <algorithm>
#include <array>
#include <set>

#include "export/served/found.h"

namespace oscar {
namespace {

constexpr std::string_view kMixed = "MIXED_PRECISION";
constexpr std::array<std::string_view, 5> kAlgorithms = {"FP8", "NVFP4", "INT8", "FP8_K_NVFP4_V",
                                                         kMixed};

std::string Said(const CacheRecipe& recipe) {
  return fmt::format("{} of {}", Quoted(recipe.Algorithm(), 40), recipe.file);
}

template <typename Predicate>
std::string AnyRecipe(const ServedView& view, const Predicate& is) {
  for (const CacheRecipe& recipe : view.at.recipes)
    if (is(recipe)) return Said(recipe);
  return {};
}

bool IsDynamic(const CacheRecipe& recipe) {
  return recipe.scheme.is_object() && recipe.scheme.value("dynamic", Json()) == true;
}

const Json* SchemeMember(const CacheRecipe& recipe, const char* key) {
  if (!recipe.scheme.is_object()) return nullptr;
  const auto found = recipe.scheme.find(key);
  return found == recipe.scheme.end() ? nullptr : &*found;
}

// Of an entry of kv_cache_quantized_layers; "" where it says none.
std::string LayerAlgorithm(const Json& entry) {
  if (!entry.is_object()) return {};
  const auto found = entry.find("quant_algo");
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string RecipeWithoutScales(const ServedView& view) {
  const CacheRecipe* recipe = view.at.Recipe();
  // Of scales that are there and do not arrive, others say why.
  if (recipe == nullptr || IsDynamic(*recipe) || !view.at.scales.empty()) return {};
  if (view.runtime == kServedSglang && !view.at.FilesOf(ScaleFileKind::kSglang).empty()) return {};
  return Said(*recipe);
}

std::string RecipesDiffer(const ServedView& view) {
  const auto& recipes = view.at.recipes;
  if (recipes.size() < 2 || recipes[0].Algorithm() == recipes[1].Algorithm()) return {};
  return fmt::format("{}, {}", Said(recipes[0]), Said(recipes[1]));
}

std::string RecipeOfOtherMethod(const ServedView& view) {
  return AnyRecipe(view, [](const CacheRecipe& recipe) {
    const bool modelopt = recipe.method == "modelopt";
    return (recipe.algorithm.is_string() && !modelopt) ||
           (recipe.scheme.is_object() && !modelopt && recipe.method != "compressed-tensors");
  });
}

std::string RecipeReadAsFp8(const ServedView& view) {
  return AnyRecipe(view, [](const CacheRecipe& recipe) {
    const Json *bits = SchemeMember(recipe, "num_bits"), *type = SchemeMember(recipe, "type");
    if (bits == nullptr || type == nullptr || recipe.method != "compressed-tensors") return false;
    return (*type == "float") != (*bits == 8);
  });
}

std::string RecipeAsymmetric(const ServedView& view) {
  return AnyRecipe(view, [](const CacheRecipe& recipe) {
    const Json* symmetric = SchemeMember(recipe, "symmetric");
    return symmetric != nullptr && *symmetric == false;
  });
}

std::string RecipeUnknown(const ServedView& view) {
  return AnyRecipe(view, [](const CacheRecipe& recipe) {
    return recipe.algorithm.is_string() &&
           std::ranges::find(kAlgorithms, recipe.Algorithm()) == kAlgorithms.end();
  });
}

std::string RecipePerLayer(const ServedView& view) {
  return AnyRecipe(view, [&](const CacheRecipe& recipe) {
    if (!recipe.layers.is_object() || recipe.layers.empty()) return false;
    std::set<std::string> algorithms;
    for (const Json& entry : recipe.layers) algorithms.insert(LayerAlgorithm(entry));
    const bool some = !view.at.layers.empty() && recipe.layers.size() < view.at.layers.size();
    return some || algorithms.size() > 1 || *algorithms.begin() != recipe.Algorithm();
  });
}

std::string RecipeSchema(const ServedView& view) {
  return AnyRecipe(view, [](const CacheRecipe& recipe) {
    return recipe.layers.is_object() && recipe.schema != 1;
  });
}

std::string RecipeOfOtherLayers(const ServedView& view) {
  std::vector<std::string> names;
  for (const CacheRecipe& recipe : view.at.recipes) {
    if (!recipe.layers.is_object() || !view.at.has_weights) continue;
    for (const auto& [name, entry] : recipe.layers.items())
      if (!view.at.modules.contains(name)) names.push_back(name);
  }
  return Naming(names);
}

std::string RecipeMixedOfNothing(const ServedView& view) {
  return AnyRecipe(view, [](const CacheRecipe& recipe) {
    return recipe.Algorithm() == kMixed && (!recipe.layers.is_object() || recipe.layers.empty());
  });
}

}  // namespace oscar
