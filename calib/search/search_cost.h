// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates the cost of an automatic choice, for --dry-run: its work, and its memory in addition to
// the rest of a layer's fit. The numbers count what choice_search.cc and scorer.cc do, so a new
// recipe or ratio there changes a number here.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "calib/held_out.h"
#include "calib/options.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Arms of a choice whose errors are measured in a layer, in addition to the paper's rotations.
struct ChoiceArms {
  int64_t keys = 0, points = 0;  // caches with distinct keys, and with distinct keys and values
};
ChoiceArms ChoiceArmsOf(const AutoOptions& options);

struct AutoCost {
  uint64_t bytes = 0;        // peak of one layer's search, on the device of the rows
  uint64_t host_bytes = 0;   // for the matrices of all recipes
  double multiply_adds = 0;  // float32 multiply-adds
  double elements = 0;       // read and written outside of products
  double eigen_flops = 0;    // float64 flops on the host
};

// Returns the cost for one layer; nothing if `options` make no choice.
AutoCost CostOfChoice(const LayerSpec& layer, const std::vector<int64_t>& sequence_lengths,
                      const HeldOutSplit& split, const AutoOptions& options, int64_t error_rows,
                      at::DeviceType device);

}  // namespace oscar
