// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A rotary embedding as text, for what outlives the model's configuration: a dump. All fields of
// RopeSpec by name, numbers so that they come back to the last bit.
#pragma once

#include <string>
#include <string_view>

#include "capture/model/rope_spec.h"

namespace oscar {

std::string RopeToText(const RopeSpec& rope);  // JSON, on one line
// InputError naming `what` for anything that RopeToText does not write, and for rotary dimensions
// beyond `head_dim` or factors that are not one for each pair.
RopeSpec RopeFromText(std::string_view text, int64_t head_dim, std::string_view what);

}  // namespace oscar
