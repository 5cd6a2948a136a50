// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-calibrate: one struct, one table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/options.h"
#include "tools/cli/option_table.h"

namespace oscar {

struct CalibrateOptions {
  std::string model;               // directory or Hugging Face id; empty with --merge
  std::string output;              // empty: named after the model
  std::vector<std::string> merge;  // artifacts
  std::vector<std::string> data;   // files; empty: the built-in corpus
  int64_t tokens = 30000;
  int64_t max_sequence = 0;  // 0: what the model supports, up to the token budget
  int64_t show_samples = 0;
  std::string device = "auto";
  std::string dtype = "auto";
  bool allow_unknown_config = false;
  bool restart = false;
  CalibrationOptions calibration;
};

OptionTable CalibrateTable(CalibrateOptions* options);

}  // namespace oscar
