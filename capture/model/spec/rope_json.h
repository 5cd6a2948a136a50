// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A rotary embedding as text, for data that outlives the model's configuration, such as a dump. It
// has all fields of RopeSpec by name, and numbers are read back exactly.
#pragma once

#include <string>
#include <string_view>

#include "capture/model/spec/rope_spec.h"

namespace oscar {

std::string RopeToText(const RopeSpec& rope);  // JSON, on one line
// Throws InputError naming `what` for text that RopeToText would not write, rotary dimensions
// beyond `head_dim`, or a number of factors that differs from the number of pairs.
RopeSpec RopeFromText(std::string_view text, int64_t head_dim, std::string_view what);

}  // namespace oscar
