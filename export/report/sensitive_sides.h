// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Says report.json's serving.auto.bits_by.sensitive in words: "not below 4 bits: keys of
// layer 3 (95 %)", with each side's share of what 2 bits cost the next token. Says so where no side
// stands out; empty where nothing was measured.
std::string SensitiveSidesText(const Json& serving);

}  // namespace oscar
