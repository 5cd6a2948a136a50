// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which layers of EXAONE 4 and K-EXAONE slide. sliding_window_pattern is a number (every n-th layer
// is full) or letters ("LLLG").
#pragma once

#include "capture/model/families/dense_decoder.h"

namespace oscar {

std::vector<std::optional<int64_t>> ReadExaoneWindows(ConfigReader& config);

}  // namespace oscar
