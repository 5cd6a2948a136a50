// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes the memory of an arm's cache at usual context lengths, and the number of requests that
// fit on a device beside the weights. Reported only for artifacts with choices for several bit
// budgets.
#pragma once

#include <cstdint>

#include "capture/model/spec/model_spec.h"
#include "export/measures/report.h"
#include "export/validate/arm.h"

namespace oscar {

// Returns the member "capacity" of a validation: the size of an 80 GB device, the size of the
// model's weights in bf16, and the context length of a request.
measures::DeviceCapacity DeviceCapacity(const ModelSpec& spec);

// Returns the member "capacity" of an arm.
measures::CacheCapacity ArmCapacity(const MethodContext& context, const Arm& arm,
                                    const measures::DeviceCapacity& device);

}  // namespace oscar
