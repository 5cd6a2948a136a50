// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory that an arm's cache takes at usual context lengths, and how many requests fit on a
// device together with the weights. For artifacts that have choices at several budgets.
#pragma once

#include <cstdint>

#include "capture/model/spec/model_spec.h"
#include "export/measures/report.h"
#include "export/validate/arm.h"

namespace oscar {

// Returns the member "capacity" of a validation: 80 GB, and the model's weights in bf16.
measures::DeviceCapacity DeviceCapacity(const ModelSpec& spec);

// Returns the member "capacity" of an arm.
measures::CacheCapacity ArmCapacity(const MethodContext& context, const Arm& arm,
                                    const measures::DeviceCapacity& device);

}  // namespace oscar
