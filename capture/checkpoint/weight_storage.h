// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A dense weight as the checkpoint stores it: the tensors it is made of, checked against each
// other, without reading values (but where shapes alone do not tell how they are to be read). Trap:
// "m.weight" may not exist under that name ("m.qweight"), and "m.weight" may exist and not be the
// weight (float8 codes).
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
  std::string name;  // of the stored tensor
  DType dtype{};
  std::vector<int64_t> shape;
  uint64_t begin = 0, size = 0;  // bytes within the stored tensor
};

struct WeightStorage {
  WeightScheme scheme;
  std::vector<int64_t> shape;     // of the dense tensor: [N, K], or [E, ..] for stacked experts
  std::vector<WeightPart> parts;  // codes first
  std::vector<std::string> also_read;         // stored tensors already used up (weight_shape)
  int64_t scale_rows = 0, scale_columns = 0;  // n, k that one scale covers
  bool transposed = false;                    // dense is [.., K, N] (gpt-oss's experts)
  int64_t stored_rows = 0;                    // N of what the parts hold
  int64_t first_row = 0;  // quantized matrix: shape[0] rows from here on of what the parts hold
  // GPTQ v1: added to words i % size of a row of qzeros (modulo 2^32); added to each zero point
  // (modulo 2^bits).
  std::vector<uint32_t> zero_word_increments;
  int zero_increment = 0;
  const GgufWeight* gguf = nullptr;  // kGguf: the checkpoint's

  bool plain() const { return scheme.format == WeightFormat::kPlain; }
  const WeightPart* Find(PartRole role) const;  // nullptr if there is none
  uint64_t bytes() const;                       // of all parts
};

// How the dense tensor `name` ("m.weight", "m.experts.gate_up_proj") is stored. InputError naming
// the stored tensor that is missing or wrong, expected and found.
WeightStorage FindWeightStorage(const Checkpoint& checkpoint, const std::string& name);

// Where in the files the first of it stands (Checkpoint::Place).
double PlaceOf(const Checkpoint& checkpoint, const WeightStorage& storage);

// Whether the dense tensor `name` can be made of what is stored.
bool StoresWeight(const Checkpoint& checkpoint, const std::string& name);

// Entries [first, first + count) of the first dimension. Stacked experts and plain tensors: their
// bytes alone; else all parts, and the reader of the parts takes the rows.
WeightStorage SliceStorage(WeightStorage storage, int64_t first, int64_t count);

// Every entry of the stored group index is a group: InputError naming tensor and entry. Reads it.
void CheckGroupIndex(const Checkpoint& checkpoint, const WeightStorage& storage);

// Whether a stored tensor is what a quantized checkpoint carries for activations or the KV cache.
bool IsActivationScale(std::string_view name);

bool IsPlain(DType dtype);  // BF16, F16, F32

}  // namespace oscar
