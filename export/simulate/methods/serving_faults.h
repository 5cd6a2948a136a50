// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mistakes of servers with an artifact, as methods: each is the cache of a right arm with one
// mistake. Trap: the effect of wrong rows depends on whether a server's windows are rotated, which
// is taken from the right arm.
#pragma once

#include <memory>

#include "export/simulate/cache_method.h"

namespace oscar {

// `right`: OSCAR's rotations (oscar_shared, oscar_per_head), the automatic choice, or a runtime's
// version of either; UsageError for another method. Leaves out what the artifact does not allow:
// another head's matrix where all heads share one. `context` must outlive the methods' creation
// alone.
GuestMethods ServingFaults(const CacheMethod& right, const ArmOptions& options,
                           const MethodContext& context);

}  // namespace oscar
