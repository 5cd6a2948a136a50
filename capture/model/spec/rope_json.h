// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A rotary embedding as text, for data that outlives the model's configuration: a dump. It has all
// fields of RopeSpec by name, with numbers that are read back to the last bit.
#pragma once

#include <string>
#include <string_view>

#include "capture/model/spec/rope_spec.h"

namespace oscar {

std::string RopeToText(const RopeSpec& rope);  // JSON, on one line
// Throws InputError naming `what` for text that RopeToText does not write, for rotary dimensions
// beyond `head_dim`, and for factors that are not one per pair.
RopeSpec RopeFromText(std::string_view text, int64_t head_dim, std::string_view what);

}  // namespace oscar
