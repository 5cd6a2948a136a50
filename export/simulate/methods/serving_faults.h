// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Simulates mistakes that servers make with an artifact. Each method is the cache of a correct arm
// with one mistake. Trap: the effect of a mistake depends on whether the server rotates the rows in
// its windows, which the correct arm determines.
#pragma once

#include <memory>

#include "export/simulate/cache_method.h"

namespace oscar {

// Makes faulty versions of `right`: OSCAR's rotations (oscar_shared, oscar_per_head), the automatic
// choice (auto), or a runtime's version of either. Throws UsageError for any other method. Omits
// faults that are impossible with the artifact, such as using another head's matrix if all heads
// share one. `context` is used only during this call.
GuestMethods ServingFaults(const CacheMethod& right, const ArmOptions& options,
                           const MethodContext& context);

}  // namespace oscar
