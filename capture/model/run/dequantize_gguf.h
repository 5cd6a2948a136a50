// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Dequantizes weights of a GGUF file. On any device, results equal those of the Python package gguf
// (gguf/quants.py) bit for bit. Trap: that requires its order of operations, with every result
// rounded to float32.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "capture/checkpoint/weight_storage.h"

namespace oscar {

// `bytes`: groups of `type.bytes` bytes, [..] of kByte.  // [groups, type.values] float32
at::Tensor GgmlValues(const at::Tensor& bytes, const GgmlType& type);

// Implements Dequantize() for storage with format kGguf.
void DequantizeGguf(const WeightStorage& storage, std::span<const at::Tensor> parts,
                    const at::Tensor& result);

}  // namespace oscar
