// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The record of per-layer cache types, serving.cache_types of manifest and report: the decision,
// and the costs. From the costs, types for another runtime with the same types or for another
// budget can be decided without the model.
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
    NextTokenCost cost;  // of whole caches with these types
  };
  std::string runtime;
  double bits = 0, stored_bits = 0;  // per value: the budget, and bits actually used
  int64_t tokens = 0;                // text tokens on which costs were measured
  BitPrice price = BitPrice::kNextToken;
  std::vector<LayerTypes> types = {};   // the decided types
  std::vector<TypedLayer> layers = {};  // measured costs of the same layers
  std::vector<Measured> plans = {};     // measured at `bits`; empty in a record that was read
  std::vector<Measured> curve = {};
};
Json CacheTypeRecordToJson(const CacheTypeRecord& record);

// Returns the artifact's record, or nothing if it has none. Throws InputError if the record is
// invalid.
std::optional<CacheTypeRecord> CacheTypesOf(const Artifact& artifact);
// Returns the decided types for the record's own runtime and budget. For another runtime or budget
// (`bits` not 0), plans types from the costs. Empty if a type of that runtime has no costs. Throws
// UsageError if `bits` are fewer than the runtime needs.
std::optional<std::vector<LayerTypes>> TypesFor(const CacheTypeRecord& record,
                                                std::string_view runtime, double bits = 0);

}  // namespace oscar
