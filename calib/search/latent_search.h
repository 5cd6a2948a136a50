// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the automatic choice for a layer with latent attention (choice_search.h). One cached row
// serves as key and value, so there is one transform, one clip ratio and one number of bits. They
// are chosen and judged by the row's damage as key (attention KL) and as value (output error), both
// relative to Hadamard's. The latent has no rope, so there are no pair scales in weights, and
// moments are not spread over positions. Channel scales go into the matrices by which queries and
// outputs are multiplied anyway.
#pragma once

#include <vector>

#include "calib/choose/choice.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/phase_times.h"

namespace oscar {

// Does what SearchChoices does, for a layer with latent attention.
std::vector<AutoChoice> SearchLatentChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                            const SearchOptions& options,
                                            const std::vector<AutoOptions>& others,
                                            PhaseTimes& times);

}  // namespace oscar
