// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// At how many bits: arms of a validation whose artifact has choices at several budgets
// (validation.capacity), and the types that released servers load, beside which they stand.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "export/report/record.h"

namespace oscar {

struct ReleasedType {
  std::string_view method, server, flags;
};
std::span<const ReleasedType> ReleasedTypes();                  // those of 8 bits first
const ReleasedType* FindReleasedType(std::string_view method);  // null: no server's

// Bits per element that an arm stores in requests of that many tokens, windows included. It has a
// "capacity".
Record BitsHeld(const Record& arm, const Record& validation);

// After a gate that failed: the fewest measured bits that pass it, who holds them, and the command.
// Empty where the gate passed, or none was given.
std::string WhatWouldPass(const Record& validation);

}  // namespace oscar
