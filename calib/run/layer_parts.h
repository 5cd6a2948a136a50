// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What some documents in a row leave of a layer: as tensors in one order, which ranks send
// (layer_transport.h) and shards keep (shard_directory.h), and put together with what the other
// documents leave, bit for bit what one process would have observed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calib/observe/statistics_observer.h"
#include "calib/run/calibrate.h"
#include "calib/run/tensor_file.h"

namespace oscar {

// All that differs between parts, in a fixed order.
std::vector<NamedTensor> TensorsOf(const LayerOnDevice& part);

// As large as what the documents of `share` leave of that layer, on the device of `input`.
LayerOnDevice EmptyPart(const CalibrationInput& input, const HeldOutSplit& split,
                        size_t layer_index, const RankShare& share);

// Bytes of TensorsOf(EmptyPart), nearly.
uint64_t PartBytes(const CalibrationInput& input, const HeldOutSplit& split, size_t layer_index,
                   const RankShare& share);

// The parts of all documents, in their order.
LayerOnDevice Together(std::vector<LayerOnDevice> parts, const std::vector<RankShare>& shares,
                       const HeldOutSplit& split);

}  // namespace oscar
