// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A rotary embedding as text, for data that outlives the model's configuration, such as a dump. The
// text has all fields of RopeSpec by name, and numbers are read back exactly.
#pragma once

#include <string>
#include <string_view>

#include "capture/model/spec/rope_spec.h"

namespace oscar {

std::string RopeToText(const RopeSpec& rope);  // JSON, on one line
// Throws InputError naming `what` if RopeToText would not write this text, if more than `head_dim`
// dimensions rotate, or if the number of factors is not the number of pairs.
RopeSpec RopeFromText(std::string_view text, int64_t head_dim, std::string_view what);

}  // namespace oscar
