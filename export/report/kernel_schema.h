// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The member `kernels` of a validation. Only report_schema.cc uses it.
#pragma once

#include "export/report/schema_check.h"

namespace oscar {

// Totals are the sums of the layers, and `passed` is what the numbers say.
void CheckKernels(const Spot& spot);

}  // namespace oscar
