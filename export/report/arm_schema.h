// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The member `arms` of a validation. Only report_schema.cc uses it.
#pragma once

#include "export/report/schema_check.h"

namespace oscar {

// What a runtime loses is the difference of two of the arms.
void CheckArms(const Spot& spot);

}  // namespace oscar
