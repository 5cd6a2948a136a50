// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-calibrate: one struct, one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/options.h"
#include "capture/files/block_reader.h"  // ReadMode
#include "tools/calibrate/cache_type_plan.h"
#include "tools/cli/option_table.h"
#include "tools/input/dump_input.h"
#include "tools/input/model_input.h"
#include "tools/input/rank_job.h"
#include "tools/input/self_generate.h"

namespace oscar {

// The value of --for: a consumer (a serving runtime whose rules limit the search;
// calib/consumers.h), or a runtime that stores each layer in its own type
// (calib/choose/cache_types.h).
struct ForRuntime {
  Consumer consumer = Consumer::kAny;
  std::string_view types = {};

  bool operator==(const ForRuntime&) const = default;
};

// --bits: a number or a list. A single number is stored as a number, not as a list.
struct BitBudgets {
  std::vector<double> bits = {kOscarsBits};
};
template <>
struct FieldTraits<BitBudgets> : FieldTraits<std::vector<double>> {};
inline Json FieldToJson(const BitBudgets& field) {
  return field.bits.size() == 1 ? Json(field.bits[0]) : Json(field.bits);
}
inline void FieldFromJson(const Json& value, BitBudgets* field) {
  field->bits = value.get<std::vector<double>>();
}

struct CalibrateOptions {
  ModelArguments model;            // empty with --merge and --from
  std::string output;              // empty: derived from the model's name
  std::vector<std::string> merge;  // artifacts, or all shards of a run
  std::string shard;               // like "2/8"; empty: all documents
  DataArguments data = {.tokens = 0, .packs_by_default = true};
  SelfGenerateArguments self;
  DumpArguments dump;
  int64_t show_samples = 0;
  bool restart = false, verbose = false;
  double max_vram = 0;  // GB; 0: all free memory
  ReadMode read = ReadMode::kAuto;
  RankOptions ranks;
  ForRuntime runtime;
  BitBudgets bits;
  std::optional<SearchEffort> effort = {};  // absent: depends on the device
  CacheTypesWanted types;                   // set by Resolved()
  CalibrationOptions calibration = {
      .automatic = {
          .enabled = true, .consumer = Consumer::kAny, .fold = false, .bits = kOscarsBits}};
};

// Moves --for and --bits into the calibration's options. If --for names a runtime with per-layer
// types, --bits becomes their budget, and the headline (the artifact's main choice) is the one for
// `any`. Otherwise --bits may be a list, which adds a choice for `any` at each budget; the first
// budget is also the headline's if its consumer supports it. Throws UsageError for a bad list, or
// if the two options conflict.
CalibrateOptions Resolved(CalibrateOptions options);

void AddCalibrateOptions(OptionTable& table, CalibrateOptions* options);
OptionTable CalibrateTable(CalibrateOptions* options);

}  // namespace oscar
