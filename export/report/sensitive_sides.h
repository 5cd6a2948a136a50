// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Describes serving.auto.bits_by.sensitive of report.json, such as "at least 4 bits are needed for
// keys of layer 3 (95 %)". The percentage is the share of these keys or values in the total
// next-token cost of 2 bits. Says so if none is sensitive. Empty if nothing was measured.
std::string SensitiveSidesText(const Json& serving);

}  // namespace oscar
