// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice for a layer of latent attention (choice_search.h). Its cache holds one row
// that is key and value, so there is one transform, one clip ratio and one number of bits. They are
// chosen and judged by the row's damage as key (attention-KL) and as value (output error), both in
// units of Hadamard's. The latent has no position, so everything that needs rope (pair scales in
// weights, moments spread over positions) is left out. Scales of channels go into the matrices
// instead, which queries and outputs are multiplied by anyway.
#pragma once

#include <vector>

#include "calib/choose/choice.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

// Does the same as SearchChoices for a layer in latent space.
std::vector<AutoChoice> SearchLatentChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                            const SearchOptions& options,
                                            const std::vector<AutoOptions>& others,
                                            PhaseTimes& times);

}  // namespace oscar
