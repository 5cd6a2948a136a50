// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The bits of an artifact's keys and values per layer: those of the cache types that were chosen
// for a runtime, or those of the headline choice. In the second case, a layer is stored in the
// runtime's smallest type with at least that many bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/artifact/artifact_reader.h"

namespace oscar {

struct LayerBits {
  int64_t layer_id = 0;      // the checkpoint's own number
  int k = 0, v = 0;          // bits per code, the most of any head; 16 if not quantized
  bool equal_widths = true;  // keys and values have equal head dims
};

struct BitsByLayer {
  std::vector<LayerBits> layers;
  bool typed = false;  // these are bits of cache types (export/artifact/cache_type_record.h)
};
// Returns the bits of the cache types that were chosen for an exporter; if `bits` is not 0, for a
// budget of that many bits per value. Without cache types, returns the bits of the headline choice.
// Throws InputError if the artifact has neither, or if `bits` is not 0 and it has no costs of types
// for this exporter.
BitsByLayer BitsFor(const Artifact& artifact, std::string_view exporter, double bits);

// Formats ascending numbers as "0-3,7".
std::string RangesText(const std::vector<int64_t>& numbers);

}  // namespace oscar
