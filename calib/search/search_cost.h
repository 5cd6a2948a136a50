// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of an automatic choice, for --dry-run: memory beside the rest of a layer's fit, and
// work. Counts what choice_search.cc and scorer.cc hold and do: another recipe or ratio there
// changes a number here.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "calib/held_out.h"
#include "calib/options.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Arms of a choice for which a layer's errors are measured, beside those of the paper's rotations.
struct ChoiceArms {
  int64_t keys = 0, points = 0;  // caches of distinct keys, and with their values
};
ChoiceArms ChoiceArmsOf(const AutoOptions& options);

struct AutoCost {
  uint64_t bytes = 0;        // at the peak of one layer's search, where the rows are
  uint64_t host_bytes = 0;   // matrices of all recipes
  double multiply_adds = 0;  // float32
  double elements = 0;       // read and written by everything that is no product
  double eigen_flops = 0;    // float64, on the host
};

// Returns the cost for one layer; nothing if `options` do not choose.
AutoCost CostOfChoice(const LayerSpec& layer, const std::vector<int64_t>& sequence_lengths,
                      const HeldOutSplit& split, const AutoOptions& options, int64_t error_rows,
                      at::DeviceType device);

}  // namespace oscar
