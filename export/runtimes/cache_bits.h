// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An artifact's bits per layer and side, in types that caches have: the decided types, or the
// smallest type with at least that many bits. The runtime determines how a layer is stored; the
// artifact determines how many bits it needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/artifact/artifact_reader.h"

namespace oscar {

struct LayerBits {
  int64_t layer_id = 0;      // the checkpoint's own number
  int k = 0, v = 0;          // bits of codes, maximum over heads; 16 if not quantized
  bool equal_widths = true;  // all heads of a side have the same bits
};

struct BitsByLayer {
  std::vector<LayerBits> layers;
  bool typed = false;  // bits of cache types (export/artifact/cache_type_record.h)
};
// Returns the bits of the types decided for an exporter, at `bits` per value if not 0. Without
// types, returns the bits of the headline choice. Throws InputError if the artifact has neither.
BitsByLayer BitsFor(const Artifact& artifact, std::string_view exporter, double bits);

// Formats ascending numbers as "0-3,7".
std::string RangesText(const std::vector<int64_t>& numbers);

}  // namespace oscar
