// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/cache_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "calib/choose/bit_allocation.h"
#include "capture/files/removed_names.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/float4.h"  // kNvfp4Values

namespace oscar {
namespace {

using enum CacheType;

constexpr double kBudgetSlack = 1e-9;  // bits per value

constexpr struct {
  CacheType type;
  std::string_view name;
  int bits;
} kTypeTable[] = {{kNvfp4, "nvfp4", 4}, {kFp8, "fp8", 8}, {kBf16, "bf16", 16}};

const auto& TypeRow(CacheType type) {
  return *std::ranges::find_if(kTypeTable, [&](const auto& row) { return row.type == type; });
}

const TypeCost* CostOfType(const std::vector<TypeCost>& costs, CacheType type) {
  const auto found = std::ranges::find(costs, type, &TypeCost::type);
  return found == costs.end() ? nullptr : &*found;
}

// Returns the key type with the largest error. It sets the scale for the damage of values.
const TypeCost& WorstKeys(const TypedLayer& layer) {
  return *std::ranges::max_element(layer.k, {}, &TypeCost::attention_kl);
}

double DamageOf(const TypedLayer& layer, const LayerTypes& types, BitPrice price) {
  if (price == BitPrice::kUniform) return std::exp2(-2 * layer.Bits(types));
  const auto side = [&](const std::vector<TypeCost>& costs, CacheType type, bool keys) {
    if (type == kBf16) return 0.0;
    const TypeCost* cost = CostOfType(costs, type);
    OSCAR_CHECK(cost != nullptr);
    if (price == BitPrice::kNextToken) return cost->token.damage();
    if (keys) return cost->attention_kl;
    const TypeCost& worst = WorstKeys(layer);
    return ValueDamage(cost->output_error, worst.attention_kl, worst.output_error);
  };
  return side(layer.k, types.k, true) + side(layer.v, types.v, false);
}

double Values(const TypedLayer& layer) {
  return static_cast<double>(layer.num_kv_heads * (layer.head_dim + layer.v_head_dim));
}

// The type pairs for a layer, by ascending bits. Each has less damage than those before it.
struct LayerPairs {
  std::vector<LayerTypes> types;
  BitPart part;
};

LayerPairs PairsOf(const TypedRuntime& runtime, const TypedLayer& layer, BitPrice price) {
  LayerPairs of_layer{{}, {.elements = Values(layer), .points = {}}};
  std::vector<std::pair<BitPoint, LayerTypes>> points;
  for (const LayerTypes& types : runtime.pairs) {
    if (types.k != types.v && layer.head_dim != layer.v_head_dim) continue;
    // With BitPrice::kUniform, all values of the model have the same weight.
    const double weight = price == BitPrice::kUniform ? of_layer.part.elements : 1;
    points.push_back({{layer.Bits(types), weight * DamageOf(layer, types, price)}, types});
  }
  std::ranges::stable_sort(points, [](const auto& a, const auto& b) {
    if (a.first.bits != b.first.bits) return a.first.bits < b.first.bits;
    return a.first.damage < b.first.damage;
  });
  for (const auto& [point, types] : points) {
    if (!of_layer.types.empty() && point.damage >= of_layer.part.points.back().damage) continue;
    of_layer.types.push_back(types);
    of_layer.part.points.push_back(point);
  }
  return of_layer;
}

// Returns the best types within `bits` per value, or the cheapest types if `bits` is too small.
TypePlan Plan(const TypedRuntime& runtime, std::span<const TypedLayer> layers, double bits,
              BitPrice price) {
  std::vector<LayerPairs> of_layers;
  std::vector<BitPart> parts;
  double values = 0;
  for (const TypedLayer& layer : layers) {
    of_layers.push_back(PairsOf(runtime, layer, price));
    parts.push_back(of_layers.back().part);
    values += Values(layer);
  }
  const std::vector<double> allocated = AllocateBits(parts, bits * values);
  TypePlan plan;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto at = std::ranges::find(parts[i].points, allocated[i], &BitPoint::bits);
    plan.layers.push_back(of_layers[i].types[static_cast<size_t>(at - parts[i].points.begin())]);
    plan.stored_bits += parts[i].elements * at->bits / values;
    plan.damage += at->damage;
  }
  return plan;
}

void AddCosts(Json& json, const std::vector<TypeCost>& costs) {
  for (const TypeCost& cost : costs) {
    json.push_back({{"type", CacheTypeName(cost.type)},
                    {"token_kl", cost.token.mean},
                    {"token_kl_p99", cost.token.p99},
                    {"attention_kl", cost.attention_kl},
                    {"output_error", cost.output_error}});
  }
}

std::vector<TypeCost> CostsFromJson(const Json& json, std::string_view what) {
  if (!json.is_array())
    throw InputError(fmt::format("{}: the costs of cache types must be a list", what));
  std::vector<TypeCost> costs;
  for (const Json& cost : json) {
    TypeCost& read = costs.emplace_back();
    try {
      read.type = CacheTypeFromName(JsonString(cost, "type", what));
    } catch (const UsageError& unknown) {  // the name comes from a file, not from a user
      throw InputError(fmt::format("{}: {}", what, unknown.what()));
    }
    read.token = {JsonDouble(cost, "token_kl", what), JsonDouble(cost, "token_kl_p99", what)};
    read.attention_kl = JsonDouble(cost, "attention_kl", what);
    read.output_error = JsonDouble(cost, "output_error", what);
  }
  return costs;
}

}  // namespace

std::string_view CacheTypeName(CacheType type) { return TypeRow(type).name; }

CacheType CacheTypeFromName(std::string_view name) {
  std::string names;
  for (const auto& row : kTypeTable) {
    if (row.name == name) return row.type;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  const std::string hint = RemovedHint(name);
  throw UsageError(hint.empty()
                       ? fmt::format("'{}' is not a cache type; expected one of {}", name, names)
                       : fmt::format("the cache type {} {}", name, hint));
}

int CodeBits(CacheType type) { return TypeRow(type).bits; }

double StoredBits(CacheType type) {
  const double bits = CodeBits(type);
  if (type == kNvfp4) return bits + 8.0 / kNvfp4Values;
  return bits;
}

const std::vector<TypedRuntime>& TypedRuntimes() {
  static const std::vector<TypedRuntime> runtimes = {
      {"modelopt", {{kNvfp4, kNvfp4}, {kFp8, kNvfp4}, {kFp8, kFp8}, {}}},
      {"trtllm", {{kNvfp4, kNvfp4}, {kFp8, kFp8}, {}}},
  };
  return runtimes;
}

const TypedRuntime* FindTypedRuntime(std::string_view name) {
  const auto found = std::ranges::find(TypedRuntimes(), name, &TypedRuntime::name);
  return found == TypedRuntimes().end() ? nullptr : &*found;
}

std::vector<CacheType> QuantizedTypes(const TypedRuntime& runtime) {
  std::vector<CacheType> types;
  for (const auto& row : kTypeTable) {
    const auto stores = [&](const LayerTypes& pair) {
      return pair.k == row.type || pair.v == row.type;
    };
    if (row.type != kBf16 && std::ranges::any_of(runtime.pairs, stores)) types.push_back(row.type);
  }
  return types;
}

double TypedLayer::Bits(const LayerTypes& types) const {
  return (StoredBits(types.k) * static_cast<double>(head_dim) +
          StoredBits(types.v) * static_cast<double>(v_head_dim)) /
         static_cast<double>(head_dim + v_head_dim);
}

double LeastBits(const TypedRuntime& runtime, std::span<const TypedLayer> layers) {
  return Plan(runtime, layers, 0, BitPrice::kUniform).stored_bits;
}

TypePlan PlanTypes(const TypedRuntime& runtime, std::span<const TypedLayer> layers, double bits,
                   BitPrice price) {
  TypePlan plan = Plan(runtime, layers, bits, price);
  OSCAR_CHECK(plan.stored_bits <= bits + kBudgetSlack);
  return plan;
}

Json TypedLayersToJson(std::span<const TypedLayer> layers) {
  Json json = Json::array();
  for (const TypedLayer& layer : layers) {
    json.push_back({{"layer_id", layer.layer_id},
                    {"num_kv_heads", layer.num_kv_heads},
                    {"head_dim", layer.head_dim},
                    {"v_head_dim", layer.v_head_dim},
                    {"k", Json::array()},
                    {"v", Json::array()}});
    AddCosts(json.back()["k"], layer.k);
    AddCosts(json.back()["v"], layer.v);
  }
  return json;
}

std::vector<TypedLayer> TypedLayersFromJson(const Json& json, std::string_view what) {
  if (!json.is_array() || json.empty())
    throw InputError(fmt::format("{}: the costs of cache types must be a list of layers", what));
  std::vector<TypedLayer> layers;
  for (const Json& layer : json) {
    const auto count = [&](const char* key) {
      constexpr int64_t kMost = 1 << 20;
      const int64_t value = JsonInt(layer, key, what);
      if (value > 0 && value <= kMost) return value;
      throw InputError(fmt::format("{}: costs of cache types: {} is {}, expected 1 to {}", what,
                                   key, value, kMost));
    };
    layers.push_back({.layer_id = JsonInt(layer, "layer_id", what),
                      .num_kv_heads = count("num_kv_heads"),
                      .head_dim = count("head_dim"),
                      .v_head_dim = count("v_head_dim"),
                      .k = CostsFromJson(JsonMember(layer, "k", what), what),
                      .v = CostsFromJson(JsonMember(layer, "v", what), what)});
  }
  return layers;
}

bool Knows(std::span<const TypedLayer> layers, const TypedRuntime& runtime) {
  const std::vector<CacheType> types = QuantizedTypes(runtime);
  return std::ranges::all_of(layers, [&](const TypedLayer& layer) {
    return std::ranges::all_of(types, [&](CacheType type) {
      return CostOfType(layer.k, type) != nullptr && CostOfType(layer.v, type) != nullptr;
    });
  });
}

}  // namespace oscar
