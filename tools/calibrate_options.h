// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-calibrate: one struct, one table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/options.h"
#include "capture/files/block_reader.h"  // ReadMode
#include "tools/cli/option_table.h"
#include "tools/dump_input.h"
#include "tools/model_input.h"
#include "tools/rank_job.h"
#include "tools/self_generate.h"

namespace oscar {

struct CalibrateOptions {
  ModelArguments model;            // none with --merge and --from
  std::string output;              // empty: named after the model
  std::vector<std::string> merge;  // artifacts
  DataArguments data;
  SelfGenerateArguments self;
  DumpArguments dump;
  int64_t show_samples = 0;
  bool restart = false;
  double max_vram = 0;  // GB; 0: what is free
  ReadMode read = ReadMode::kAuto;
  RankOptions ranks;
  CalibrationOptions calibration = {
      .automatic = {.enabled = true, .consumer = Consumer::kSglangOct, .fold = false}};
};

void AddCalibrateOptions(OptionTable& table, CalibrateOptions* options);
OptionTable CalibrateTable(CalibrateOptions* options);

}  // namespace oscar
