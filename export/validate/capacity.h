// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes the memory that an arm's cache takes at usual context lengths, and how many requests fit
// on a device together with the weights. Reported for artifacts that have choices at several
// budgets.
#pragma once

#include <cstdint>

#include "capture/model/spec/model_spec.h"
#include "export/measures/report.h"
#include "export/validate/arm.h"

namespace oscar {

// Returns the member "capacity" of a validation: the bytes of a device with 80 GB, the bytes that
// the model's weights take in bf16, and the tokens of a request.
measures::DeviceCapacity DeviceCapacity(const ModelSpec& spec);

// Returns the member "capacity" of an arm.
measures::CacheCapacity ArmCapacity(const MethodContext& context, const Arm& arm,
                                    const measures::DeviceCapacity& device);

}  // namespace oscar
