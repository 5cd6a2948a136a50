// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-capture: one struct, one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/cli/option_table.h"
#include "tools/input/model_input.h"
#include "tools/input/rank_job.h"

namespace oscar {

enum class CaptureFormat { kHdf5, kUpstream };

struct CaptureOptions {
  ModelArguments model;
  std::string output;
  DataArguments data = {.packs_by_default = true};
  CaptureFormat format = CaptureFormat::kHdf5;
  std::optional<std::string> scores;  // "rows", "all", "none"; absent: rows if the format can
  int64_t score_rows = 64;            // rows per sequence
  bool logits = false;
  int64_t deflate = 0;
  RankOptions ranks;
};

OptionTable CaptureTable(CaptureOptions* options);

}  // namespace oscar
