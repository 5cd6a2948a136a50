// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// HIGGS for the tokens of a cache (arXiv 2411.17525, section 4), as in AQUA-KV
// (goodevening13/aquakv, aquakv/quantizers.py). Groups of a token's channels are rotated by
// Hadamard matrices of order up to 1024 and divided by their root mean square. Pairs of values are
// then rounded to the grid that minimizes the error of normal values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

// Returns how many channels share a Hadamard matrix and a norm: the largest power of two up to 1024
// that divides `channels`. AQUA-KV's code pads with zeros to 1024 instead.
int64_t HiggsGroup(int64_t channels);

// Returns the grid [entries, 2] float64 on the host: k-means centroids of normal draws. `entries`:
// 16 (2 bits per value) or 256 (4 bits).
const at::Tensor& HiggsGrid(int64_t entries);

// Returns rows [..., channels] as read back: float32 or float64. Norms are rounded to float16.
at::Tensor HiggsRoundTrip(const at::Tensor& rows, int64_t entries);

}  // namespace oscar
