// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the automatic choices (calibrated settings) at several bit budgets (validation.capacity)
// with the cache types of released servers, by the bits that they store.
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
const ReleasedType* FindReleasedType(std::string_view method);  // null if no server loads it

// Returns the bits per element, including windows, that an arm stores for a request of
// capacity.request_tokens tokens. The arm must have a member "capacity".
Record BitsHeld(const Record& arm, const Record& validation);

// Returns text about what would make a failed gate pass: the measured arm with the fewest bits that
// passes, and the command or flags to use it. Empty if the gate passed or none was given.
std::string WhatWouldPass(const Record& validation);

}  // namespace oscar
