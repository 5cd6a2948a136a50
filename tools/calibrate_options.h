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
#include "tools/cache_type_plan.h"
#include "tools/cli/option_table.h"
#include "tools/dump_input.h"
#include "tools/model_input.h"
#include "tools/rank_job.h"
#include "tools/self_generate.h"

namespace oscar {

// --for: who loads a choice, or what stores types by layer (calib/choose/cache_types.h).
struct ForRuntime {
  Consumer consumer = Consumer::kSglangOct;
  std::string_view types = {};

  bool operator==(const ForRuntime&) const = default;
};

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
  CacheTypesWanted types;  // set by Resolved()
  CalibrationOptions calibration = {
      .automatic = {
          .enabled = true, .consumer = Consumer::kSglangOct, .fold = false, .bits = kOscarBytes}};
};

// With --for in the calibration's options: of types `any` has the headline, and --bits are theirs.
// Throws UsageError where the two do not go together.
CalibrateOptions Resolved(CalibrateOptions options);

void AddCalibrateOptions(OptionTable& table, CalibrateOptions* options);
OptionTable CalibrateTable(CalibrateOptions* options);

}  // namespace oscar
