// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An artifact's bits by layer and side as types that caches have: the smallest type of at least so
// many bits. What a layer is stored in is a matter of the runtime; how many bits it needs is the
// artifact's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/artifact/artifact_reader.h"

namespace oscar {

inline constexpr int kNotQuantized = 16;  // bits

struct LayerBits {
  int64_t layer_id = 0;      // the checkpoint's own number
  int k = 0, v = 0;          // of codes, of the head with most; kNotQuantized
  bool equal_widths = true;  // of heads of keys and of values
};

// Of the headline choice. InputError where there is none.
std::vector<LayerBits> BitsOf(const Artifact& artifact);

// "0-3,7": numbers in ascending order.
std::string RangesText(const std::vector<int64_t>& numbers);

}  // namespace oscar
