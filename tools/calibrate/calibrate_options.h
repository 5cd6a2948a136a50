// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-calibrate: one struct, one table.
#pragma once

#include <cstdint>
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

// --for: who loads a choice, or what stores types by layer (calib/choose/cache_types.h).
struct ForRuntime {
  Consumer consumer = Consumer::kAny;
  std::string_view types = {};

  bool operator==(const ForRuntime&) const = default;
};

// --bits: one number, which configurations and artifacts store as such, or a list.
struct BitBudgets {
  std::vector<double> bits = {kOscarBytes};
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
  ModelArguments model;            // none with --merge and --from
  std::string output;              // empty: named after the model
  std::vector<std::string> merge;  // artifacts, or all shards of a run
  std::string shard;               // "2/8"; empty: all documents
  DataArguments data = {.tokens = 0, .packs_by_default = true};
  SelfGenerateArguments self;
  DumpArguments dump;
  int64_t show_samples = 0;
  bool restart = false, verbose = false;
  double max_vram = 0;  // GB; 0: what is free
  ReadMode read = ReadMode::kAuto;
  RankOptions ranks;
  ForRuntime runtime;
  BitBudgets bits;
  CacheTypesWanted types;  // set by Resolved()
  CalibrationOptions calibration = {
      .automatic = {
          .enabled = true, .consumer = Consumer::kAny, .fold = false, .bits = kOscarBytes}};
};

// With --for and --bits in the calibration's options: of types `any` has the headline, and --bits
// are theirs; of a list `any` has a choice at each, the first of which is its headline. Throws
// UsageError for a list that makes no sense, and where the two do not go together.
CalibrateOptions Resolved(CalibrateOptions options);

void AddCalibrateOptions(OptionTable& table, CalibrateOptions* options);
OptionTable CalibrateTable(CalibrateOptions* options);

}  // namespace oscar
