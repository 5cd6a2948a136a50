// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares arms with choices at several budgets (validation.capacity) with the types that released
// servers load, at equal bits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "export/report/record.h"

namespace oscar {

struct ReleasedType {
  std::string_view method, server, flags;
};
std::span<const ReleasedType> ReleasedTypes();                  // those with 8 bits come first
const ReleasedType* FindReleasedType(std::string_view method);  // null for a method of no server

// Returns the bits per element that an arm stores for requests of capacity.request_tokens tokens,
// including windows. The arm must have a "capacity".
Record BitsHeld(const Record& arm, const Record& validation);

// Returns what would make a failed gate pass: the fewest measured bits that do, the arm with them,
// and the command. Empty if the gate passed, or none was given.
std::string WhatWouldPass(const Record& validation);

}  // namespace oscar
