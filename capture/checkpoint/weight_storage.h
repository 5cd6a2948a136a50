// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A dense weight as the checkpoint stores it: its tensors, checked against each other. Values are
// read only if the shapes alone do not determine the format. Trap: "m.weight" may not exist under
// that name ("m.qweight"), and an existing "m.weight" may contain only the codes (float8).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/weight_scheme.h"

namespace oscar {

enum class PartRole { kCodes, kScales, kZeros, kGroupIndex, kGlobalScale };

struct WeightPart {
  PartRole role{};
  std::string name;  // name of the stored tensor
  DType dtype{};
  std::vector<int64_t> shape;
  uint64_t begin = 0, size = 0;  // bytes inside the stored tensor
};

struct WeightStorage {
  WeightScheme scheme;
  std::vector<int64_t> shape;                 // dense shape: [N, K], or [E, ..] for stacked experts
  std::vector<WeightPart> parts;              // codes first
  std::vector<std::string> also_read;         // other stored tensors in use (weight_shape)
  int64_t scale_rows = 0, scale_columns = 0;  // [n, k] values that share one scale
  bool transposed = false;                    // the dense tensor is [.., K, N] (gpt-oss's experts)
  int64_t stored_rows = 0;                    // N of the stored tensors, before slicing
  int64_t first_row = 0;                      // quantized matrix: stored row of dense row 0
  // GPTQ v1: entry i % size is added to word i of a row of qzeros (modulo 2^32), and zero_increment
  // to each zero point (modulo 2^bits).
  std::vector<uint32_t> zero_word_increments;
  int zero_increment = 0;
  const GgufWeight* gguf = nullptr;  // kGguf: owned by the checkpoint

  bool plain() const { return scheme.format == WeightFormat::kPlain; }
  const WeightPart* Find(PartRole role) const;  // nullptr if there is none
  uint64_t bytes() const;                       // total of all parts
};

// Finds how the dense tensor `name` ("m.weight", "m.experts.gate_up_proj") is stored. Throws
// InputError naming the stored tensor that is missing or wrong, what was expected and what was
// found.
WeightStorage FindWeightStorage(const Checkpoint& checkpoint, const std::string& name);

// Returns the position of the weight's first part in the files (Checkpoint::Place).
double PlaceOf(const Checkpoint& checkpoint, const WeightStorage& storage);

// Whether the dense tensor `name` can be made from the stored tensors.
bool StoresWeight(const Checkpoint& checkpoint, const std::string& name);

// Selects entries [first, first + count) of the first dimension. For stacked experts and plain
// tensors it keeps only their bytes; otherwise it keeps all parts, and the reader selects the rows.
WeightStorage SliceStorage(WeightStorage storage, int64_t first, int64_t count);

// Throws InputError naming tensor and entry unless every entry of the stored group index is a valid
// group. Reads the index.
void CheckGroupIndex(const Checkpoint& checkpoint, const WeightStorage& storage);

// Whether a stored tensor of a quantized checkpoint is a scale for activations or the KV cache.
bool IsActivationScale(std::string_view name);

bool IsPlain(DType dtype);  // BF16, F16, F32

}  // namespace oscar
