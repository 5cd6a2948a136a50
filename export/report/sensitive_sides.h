// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Describes report.json's serving.auto.bits_by.sensitive: "not below 4 bits: keys of layer 3 (95
// %)", with each side's share of the next-token cost at 2 bits. Says so if no side is sensitive.
// Empty if nothing was measured.
std::string SensitiveSidesText(const Json& serving);

}  // namespace oscar
