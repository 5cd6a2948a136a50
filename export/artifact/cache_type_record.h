// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The record of per-layer cache types (serving.cache_types in manifest and report): the decided
// types, and the measured cost of each type. The costs suffice to decide again, without the model,
// for another budget or for another runtime that has the same types.
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
  double bits = 0, stored_bits = 0;  // per value: the budget, and what the decided types take
  int64_t tokens = 0;                // text tokens on which costs were measured
  BitPrice price = BitPrice::kNextToken;
  std::vector<LayerTypes> types = {};   // the decided types
  std::vector<TypedLayer> layers = {};  // measured costs of the same layers
  std::vector<Measured> plans = {};     // measured at `bits`; not read back
  std::vector<Measured> curve = {};
};
Json CacheTypeRecordToJson(const CacheTypeRecord& record);

// Returns the artifact's record, or nothing if it has none. Throws InputError if the record is
// invalid.
std::optional<CacheTypeRecord> CacheTypesOf(const Artifact& artifact);
// Returns the decided types for the record's own runtime and budget. For another runtime, or other
// `bits` (0: the record's), plans types from the costs. Empty if the costs lack a type of that
// runtime. Throws UsageError if `bits` are fewer than the runtime needs.
std::optional<std::vector<LayerTypes>> TypesFor(const CacheTypeRecord& record,
                                                std::string_view runtime, double bits = 0);

}  // namespace oscar
