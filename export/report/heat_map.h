// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A heat map of errors: a column for each layer, a row for each KV head, and a colour for the
// logarithm of a value.
#pragma once

#include <string>
#include <vector>

#include "export/report/record.h"

namespace oscar {

// Returns one of nine heat colours for a value on a log scale between lo and hi: h0 (lowest) to h8
// (highest). A value <= 0 is h0.
int HeatStep(double value, double lo, double hi);

struct HeatMap {
  std::string id, title, note, description;  // as in LineChart
  Record columns;                            // [num_layers] ids
  Record values;                             // [num_layers][num_kv_heads]
  double lo = 0, hi = 0;                     // range of the colours; <= 0: that of the data
};

std::string RenderHeatMap(const HeatMap& map);

}  // namespace oscar
