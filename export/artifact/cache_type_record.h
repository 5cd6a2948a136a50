// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of a runtime's cache by layer as an artifact holds them, in the manifest's and the report's
// serving.cache_types: what was decided, and the costs by which another runtime of the same types,
// or another budget, is decided without the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/choose/cache_types.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

struct CacheTypeRecord {
  struct Measured {
    BitPrice price = BitPrice::kNextToken;
    double bits = 0;  // budget
    TypePlan plan;
    NextTokenCost cost;  // of the whole cache
  };
  std::string runtime;
  double bits = 0, stored_bits = 0;  // per value: asked for, taken
  int64_t tokens = 0;                // of the text that costs were measured on
  BitPrice price = BitPrice::kNextToken;
  std::vector<LayerTypes> types;        // as decided
  std::vector<TypedLayer> layers = {};  // the same layers' costs
  std::vector<Measured> plans = {};     // at `bits`; what was read has no types here
  std::vector<Measured> curve = {};
};
Json CacheTypeRecordToJson(const CacheTypeRecord& record);

// InputError where the record is not sound. Empty where the artifact has none.
std::optional<CacheTypeRecord> CacheTypesOf(const Artifact& artifact);
// As decided for its own runtime at its own budget; else (another runtime, `bits` that are not 0)
// planned anew from its costs. Empty where its costs do not have all types of that runtime.
// UsageError where `bits` are fewer than the runtime's least.
std::optional<std::vector<LayerTypes>> TypesFor(const CacheTypeRecord& record,
                                                std::string_view runtime, double bits = 0);

}  // namespace oscar
