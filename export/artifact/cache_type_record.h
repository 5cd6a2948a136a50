// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of a runtime's cache by layer, as serving.cache_types of the manifest and the report holds
// them: the decision, and the costs from which another runtime with the same types, or another
// budget, is decided without the model.
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
  double bits = 0, stored_bits = 0;  // per value: budget, and bits really used
  int64_t tokens = 0;                // number of text tokens that costs were measured on
  BitPrice price = BitPrice::kNextToken;
  std::vector<LayerTypes> types = {};   // as decided
  std::vector<TypedLayer> layers = {};  // the same layers' costs
  std::vector<Measured> plans = {};     // at `bits`; empty in a record that was read
  std::vector<Measured> curve = {};
};
Json CacheTypeRecordToJson(const CacheTypeRecord& record);

// Throws InputError if the record is invalid. Empty if the artifact has none.
std::optional<CacheTypeRecord> CacheTypesOf(const Artifact& artifact);
// Returns the decided types for the record's own runtime and budget. For another runtime or budget
// (`bits` not 0), plans from the costs. Empty if the costs lack a type of that runtime. Throws
// UsageError if `bits` are fewer than the runtime's least.
std::optional<std::vector<LayerTypes>> TypesFor(const CacheTypeRecord& record,
                                                std::string_view runtime, double bits = 0);

}  // namespace oscar
