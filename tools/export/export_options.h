// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-export: one struct, one table.
#pragma once

#include <string>

#include "export/fold/fold_plan.h"
#include "export/runtimes/exporter.h"
#include "tools/cli/option_table.h"

namespace oscar {

enum class Copy { kNone, kFolded, kAbsorbed };

// The target that --to names: nothing, a row of AllExporters(), or a copy of the checkpoint.
struct Target {
  const Exporter* exporter = nullptr;
  Copy copy = Copy::kNone;

  bool given() const { return exporter != nullptr || copy != Copy::kNone; }
  bool operator==(const Target&) const = default;
};
enum class Source { kNone, kPublished };
enum class Rotations { kAuto, kChosen, kOscar };

struct ExportOptions {
  std::string input;
  std::string output;
  Target to;
  Source from = Source::kNone;
  Rotations rotations = Rotations::kAuto;
  bool inspect = false;
  bool list = false;
  bool folded = false;
  std::string merge_into, gguf;
  bool copy = false, per_head = false, fold_values = false;
  double bits = 0;
  std::string model, device = "auto";
  FoldOptions fold;
};

OptionTable ExportTable(ExportOptions* options);

}  // namespace oscar
