// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tokens whose keys and values a cache keeps exact.
#pragma once

#include <cstdint>

namespace oscar {

struct CacheWindows {
  int64_t sink = 0;    // keys t < sink
  int64_t recent = 0;  // keys with i - t < recent, for query i
};

}  // namespace oscar
