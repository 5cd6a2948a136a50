// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// HIGGS on tokens (arXiv 2411.17525, section 4, as AQUA-KV uses it: goodevening13/aquakv,
// aquakv/quantizers.py). A token's channels are rotated by Hadamard matrices of up to 1024, divided
// by their norm, and rounded two at a time to the grid that minimizes the error of normal values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

// Returns how many channels share a Hadamard matrix and a norm: the largest power of two up to 1024
// that divides `channels`. The source always pads with zeros to 1024.
int64_t HiggsGroup(int64_t channels);

// Returns [entries, 2] float64 on the host: k-means of normal draws, 16 (2 bits) or 256 (4 bits).
const at::Tensor& HiggsGrid(int64_t entries);

// Returns rows [..., channels] as read back: float32 or float64. Norms are rounded to float16.
at::Tensor HiggsRoundTrip(const at::Tensor& rows, int64_t entries);

}  // namespace oscar
