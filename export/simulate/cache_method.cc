// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/cache_method.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"  // Quoted
#include "capture/files/removed_names.h"
#include "export/artifact/artifact_format.h"
#include "export/simulate/guest_methods.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Compares the artifact's geometry with the layers for which it is to be used.
void CheckGeometry(const Artifact& artifact, const LayerSpec& layer) {
  const AttentionSpec& spec = layer.attention;
  for (const Json& geometry : JsonMember(artifact.manifest(), "geometry", kManifestFile)) {
    if (JsonInt(geometry, "layer_id", kManifestFile) != layer.layer_id) continue;
    const int64_t heads = JsonInt(geometry, "num_kv_heads", kManifestFile);
    const int64_t d = JsonInt(geometry, "head_dim", kManifestFile);
    const int64_t dv = JsonInt(geometry, "v_head_dim", kManifestFile);
    if (d != spec.head_dim || dv != spec.v_head_dim || (heads != spec.num_kv_heads && heads != 1)) {
      throw InputError(
          fmt::format("{}: layer {} was fitted for {} KV heads of dimension {} and {}, but the "
                      "model has {} of {} and {}; the artifact belongs to another model",
                      artifact.directory().string(), layer.layer_id, heads, d, dv,
                      spec.num_kv_heads, spec.head_dim, spec.v_head_dim));
    }
    return;
  }
  throw InputError(fmt::format("{}: has no rotations for layer {} of the model",
                               artifact.directory().string(), layer.layer_id));
}

}  // namespace

MethodContext::MethodContext(const Artifact& artifact, const std::vector<LayerSpec>& layers,
                             const Options& options)
    : artifact_(artifact), layers_(layers), options_(options) {
  const GuestMethods budgets = BudgetMethods(artifact);
  options_.guests.insert(options_.guests.end(), budgets.begin(), budgets.end());
  for (const LayerSpec& layer : layers) {
    CheckGeometry(artifact, layer);
    for (int64_t dim : {layer.attention.head_dim, layer.attention.v_head_dim}) {
      if (options.quant_group_size > 0 && dim % options.quant_group_size != 0) {
        throw UsageError(
            fmt::format("a quantization group of {} values does not divide the head dimension {} "
                        "of layer {}",
                        options.quant_group_size, dim, layer.layer_id));
      }
    }
  }
  if (artifact.layer_ids().size() != layers.size()) {
    throw InputError(fmt::format("{}: has rotations for {} layers, but the model has {}",
                                 artifact.directory().string(), artifact.layer_ids().size(),
                                 layers.size()));
  }
}

const StoredLayer& MethodContext::Stored(size_t layer_index) const {
  const auto found = stored_.find(layer_index);
  if (found != stored_.end()) return found->second;
  if (stored_.size() >= 2) stored_.clear();
  return stored_.emplace(layer_index, artifact_.ReadLayer(layers_[layer_index].layer_id))
      .first->second;
}

const CalibrationRows& MethodContext::rows() const {
  OSCAR_CHECK(!rows_.k.empty());
  return rows_;
}

bool HasLatents(const MethodContext& context) {
  return std::ranges::any_of(
      context.layers(), [](const LayerSpec& layer) { return layer.attention.latent.has_value(); });
}

LayerCache MakeLayerCache(const CacheMethod& method, const MethodContext& context,
                          size_t layer_index, const ArmOptions& options) {
  const LayerSpec& layer = context.layers()[layer_index];
  if (layer.attention.latent && !method.why_no_latents.empty()) {
    throw InputError(fmt::format("layer {} has latent attention: {}: {}", layer.layer_id,
                                 method.name, method.why_no_latents));
  }
  LayerCache cache = method.make(context, layer_index, options);
  if (!layer.attention.latent) return cache;
  if (const auto* once = std::get_if<LayerCache::StoreOnce>(&cache.otherwise)) {
    cache.store = [once = *once](const CacheSides& rows) { return once(rows.k); };
  } else {
    cache.store = [store = cache.store](const CacheSides& rows) {
      CachedRows stored = store({rows.k, rows.k, rows.sequence});
      stored.quantized.v = stored.quantized.k;
      stored.exact.v = stored.exact.k;
      return stored;
    };
  }
  cache.v_exact = cache.k_exact;
  return cache;
}

ExactTokens ArmWindows(const MethodContext& context, const ArmOptions& options) {
  return options.windows ? ExactInWindows(context.options().windows) : ExactTokens{};
}

at::ScalarType ResultType(const at::Tensor& rows) {
  return rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

const CacheMethod& CacheMethodNamed(std::string_view name, const GuestMethods& guests) {
  std::vector<std::string> names;
  for (const CacheMethod& method : CacheMethods()) {
    if (method.name == name) return method;
    names.emplace_back(method.name);
  }
  for (const auto& guest : guests) {
    if (guest->name == name) return *guest;
    names.emplace_back(guest->name);
  }
  if (const std::string hint = RemovedHint(name); !hint.empty())
    throw UsageError(fmt::format("method {} {}", name, hint));
  throw UsageError(fmt::format("unknown method {}; the nearest of {} methods: {}", Quoted(name),
                               names.size(), Nearest(name, names)));
}

}  // namespace oscar
