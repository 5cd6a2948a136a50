// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Common code of Granite's families: four multipliers, experts, sliding layers. Each family defines
// what else a layer adds to the experts' sum.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

// A model with Granite's multipliers and biases, and otherwise according to `options`.
ModelSpec ReadGraniteLayers(ConfigReader& config, DenseDecoderOptions options);
// A model with experts in every layer instead of an MLP.
ModelSpec ReadGraniteExperts(ConfigReader& config);

// Granite SWA: windows, a sink for each head, a rope base for each layer.
void PutSlidingLayers(ConfigReader& config, ModelSpec& spec);

// An MLP whose gate and up are one tensor: prefix + "input_linear", "output_linear".
struct FusedMlp {
  LinearSpec gate, up, down;
};
FusedMlp NameFusedMlp(const std::string& prefix, int64_t hidden_size, int64_t intermediate_size);
// Uses such an MLP as the shared expert.
void NameFusedSharedExpert(const std::string& prefix, int64_t intermediate_size,
                           ExpertsSpec& experts);

}  // namespace oscar
