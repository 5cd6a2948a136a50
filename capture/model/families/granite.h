// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What Granite's families share: four multipliers, experts, sliding layers. What else a layer
// adds to the experts' sum is the family's to say.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

// A model with Granite's multipliers and biases; the rest is as `options` say.
ModelSpec ReadGraniteLayers(ConfigReader& config, DenseDecoderOptions options);
// Experts in every layer instead of an MLP.
ModelSpec ReadGraniteExperts(ConfigReader& config);

// Granite SWA: windows, a sink for each head, a base of rope for each layer.
void PutSlidingLayers(ConfigReader& config, ModelSpec& spec);

// An MLP whose gate and up are one tensor: prefix + "input_linear", "output_linear".
struct FusedMlp {
  LinearSpec gate, up, down;
};
FusedMlp NameFusedMlp(const std::string& prefix, int64_t hidden_size, int64_t intermediate_size);
// Such an MLP as the expert that every token takes.
void NameFusedSharedExpert(const std::string& prefix, int64_t intermediate_size,
                           ExpertsSpec& experts);

}  // namespace oscar
