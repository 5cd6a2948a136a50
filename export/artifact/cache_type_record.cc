// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/cache_type_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kWhat = "manifest.json, serving.cache_types";
constexpr const char* kRecord = "cache_types";

Json MeasuredToJson(const std::vector<CacheTypeRecord::Measured>& all) {
  Json json = Json::array();
  for (const auto& measured : all) {
    json.push_back({{"by", BitPriceName(measured.price)},
                    {"bits", measured.bits},
                    {"bits_stored", measured.plan.stored_bits},
                    {"token_kl", measured.cost.mean},
                    {"token_kl_p99", measured.cost.p99}});
  }
  return json;
}

CacheType TypeOf(const Json& layer, const char* side) {
  try {
    return CacheTypeFromName(JsonString(layer, side, kWhat));
  } catch (const UsageError& unknown) {  // the name comes from the file, not from the command line
    throw InputError(fmt::format("{}: {}", kWhat, unknown.what()));
  }
}

}  // namespace

Json CacheTypeRecordToJson(const CacheTypeRecord& record) {
  Json layers = Json::array();
  for (size_t i = 0; i < record.types.size(); ++i) {
    layers.push_back({{"layer_id", record.layers[i].layer_id},
                      {"k", CacheTypeName(record.types[i].k)},
                      {"v", CacheTypeName(record.types[i].v)}});
  }
  return {{"for", record.runtime},
          {"bits", record.bits},
          {"bits_stored", record.stored_bits},
          {"tokens", record.tokens},
          {"price", BitPriceName(record.price)},
          {"layers", layers},
          {"costs", TypedLayersToJson(record.layers)},
          {"plans", MeasuredToJson(record.plans)},
          {"curve", MeasuredToJson(record.curve)}};
}

std::optional<CacheTypeRecord> CacheTypesOf(const Artifact& artifact) {
  const Json serving = artifact.manifest().value("serving", Json::object());
  if (!serving.is_object() || !serving.contains(kRecord)) return {};
  const Json& json = serving.at(kRecord);
  const auto refuse = [](std::string_view why) {
    throw InputError(fmt::format("{}: {}", kWhat, why));
  };
  CacheTypeRecord record{.runtime = JsonString(json, "for", kWhat),
                         .bits = JsonDouble(json, "bits", kWhat),
                         .stored_bits = JsonDouble(json, "bits_stored", kWhat),
                         .tokens = JsonInt(json, "tokens", kWhat),
                         .types = {}};
  record.layers = TypedLayersFromJson(JsonMember(json, "costs", kWhat), kWhat);
  const Json& layers = JsonMember(json, "layers", kWhat);
  const std::vector<int> ids = artifact.layer_ids();
  if (!layers.is_array() || layers.size() != record.layers.size() || layers.size() != ids.size())
    refuse("expected the artifact's layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (JsonInt(layers[i], "layer_id", kWhat) != ids[i] || record.layers[i].layer_id != ids[i])
      refuse("expected the artifact's layers");
    record.types.push_back({TypeOf(layers[i], "k"), TypeOf(layers[i], "v")});
  }
  const std::string price = JsonString(json, "price", kWhat);
  for (const BitPrice known : kBitPrices)
    if (BitPriceName(known) == price) record.price = known;
  if (BitPriceName(record.price) != price) refuse("unknown price");
  return record;
}

std::optional<std::vector<LayerTypes>> TypesFor(const CacheTypeRecord& record,
                                                std::string_view runtime, double bits) {
  if (record.runtime == runtime && bits == 0) return record.types;
  const TypedRuntime* typed = FindTypedRuntime(runtime);
  if (typed == nullptr || !Knows(record.layers, *typed)) return {};
  const double least = LeastBits(*typed, record.layers), budget = bits == 0 ? record.bits : bits;
  if (budget < least) {
    throw UsageError(fmt::format(
        "{:g} bits per value were requested, but {} stores at least {:g}, including scales", budget,
        runtime, least));
  }
  return PlanTypes(*typed, record.layers, budget, record.price).layers;
}

}  // namespace oscar
