// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Types in which runtimes store whole caches, without rotating rows. A plan assigns types to layers
// under a budget of stored bits. The cost of storing keys or values of a layer in a type is the
// next-token KL when everything else has 16 bits. Names are stored in artifacts.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "calib/choose/choice.h"  // NextTokenCost
#include "calib/consumers.h"      // BitPrice
#include "capture/files/strict_json.h"

namespace oscar {

enum class CacheType { kNvfp4, kFp8, kBf16 };
std::string_view CacheTypeName(CacheType type);
CacheType CacheTypeFromName(std::string_view name);  // throws UsageError listing the names
int CodeBits(CacheType type);
double StoredBits(CacheType type);  // per value, scales included

struct LayerTypes {
  CacheType k = CacheType::kBf16, v = CacheType::kBf16;

  auto operator<=>(const LayerTypes&) const = default;
};

// The pairs of key and value types in which a runtime can store a layer. A pair of two different
// types can only store layers whose key and value head dimensions are equal. `name` is the
// runtime's name in oscar-calibrate --for and oscar-export --to.
struct TypedRuntime {
  std::string_view name;
  std::vector<LayerTypes> pairs;
};
const std::vector<TypedRuntime>& TypedRuntimes();
const TypedRuntime* FindTypedRuntime(std::string_view name);  // null if unknown
std::vector<CacheType> QuantizedTypes(const TypedRuntime& runtime);

// The cost of storing one side of one layer in a type while everything else stays exact.
struct TypeCost {
  CacheType type = CacheType::kFp8;
  NextTokenCost token;
  double attention_kl = 0;  // nats, over sampled rows; 0 for values
  double output_error = 0;  // relative error of the layer's attention output
};
struct TypedLayer {
  int64_t layer_id = 0;
  int64_t num_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  std::vector<TypeCost> k = {}, v = {};

  double Bits(const LayerTypes& types) const;  // stored bits per value, mean of both sides
};

struct TypePlan {
  std::vector<LayerTypes> layers;
  double stored_bits = 0;  // mean over all values, at most the budget
  double damage = 0;       // in the unit of the plan's price; 16-bit types cost nothing
};

// Returns the bits per value of the cheapest plan.
double LeastBits(const TypedRuntime& runtime, std::span<const TypedLayer> layers);
// Returns the types of each layer in a plan that stores at most `bits` per value. `bits` must be at
// least LeastBits. `layers` must hold the costs of all quantized types that the runtime can store.
TypePlan PlanTypes(const TypedRuntime& runtime, std::span<const TypedLayer> layers, double bits,
                   BitPrice price);

Json TypedLayersToJson(std::span<const TypedLayer> layers);
std::vector<TypedLayer> TypedLayersFromJson(const Json& json, std::string_view what);
bool Knows(std::span<const TypedLayer> layers, const TypedRuntime& runtime);

}  // namespace oscar
