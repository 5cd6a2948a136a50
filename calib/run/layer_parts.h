// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a layer: the observations of some adjacent documents, as tensors in a fixed order. Ranks
// send their parts to each other (layer_transport.h), and shards store them (shard_directory.h).
// All parts together equal, bit for bit, what one process would have observed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calib/observe/statistics_observer.h"
#include "calib/run/calibrate.h"
#include "calib/run/tensor_file.h"

namespace oscar {

// Returns all tensors that differ between parts, in a fixed order.
std::vector<NamedTensor> TensorsOf(const LayerOnDevice& part);

// Returns an empty part, as large as that of the documents in `share`, on the device of `input`.
LayerOnDevice EmptyPart(const CalibrationInput& input, const HeldOutSplit& split,
                        size_t layer_index, const RankShare& share);

// Returns approximately the bytes of TensorsOf(EmptyPart).
uint64_t PartBytes(const CalibrationInput& input, const HeldOutSplit& split, size_t layer_index,
                   const RankShare& share);

// Joins the parts of all documents, in the order of the documents.
LayerOnDevice Together(std::vector<LayerOnDevice> parts, const std::vector<RankShare>& shares,
                       const HeldOutSplit& split);

}  // namespace oscar
