// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Queries, keys and values of a golden file as float64 tensors, and plain causal attention over
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "calib/observe/statistics_observer.h"
#include "capture/checkpoint/safetensors.h"

namespace oscar {

// The tensors of one layer for several sequences, float64, [tokens, heads, dim] each.
struct GoldenLayer {
  LayerSpec spec;
  std::vector<at::Tensor> q, k, v, attn_out;
};

at::Tensor ReadFloat64(const SafetensorsFile& file, const std::string& name);

// Reads "layer.<id>.q", ".k" and ".v" as one sequence and computes attn_out in float64.
GoldenLayer ReadGoldenLayer(const SafetensorsFile& file, int layer_id);

// Returns random heads with correlated channels; `lengths` has one entry per sequence.
GoldenLayer RandomLayer(int64_t num_q_heads, int64_t num_kv_heads, int64_t d, int64_t dv,
                        const std::vector<int64_t>& lengths, std::optional<int64_t> window,
                        uint64_t seed);

// Shows the layer to an observer, as the layer loop would, and returns what it observed.
ObservedLayer Observe(const GoldenLayer& layer, const HeldOutSplit& split, int64_t error_rows);

// Latent attention with random weights, float64: as its cache stores it, and with expanded heads.
struct GoldenLatents {
  LayerSpec spec;             // in latent space
  std::vector<at::Tensor> q;  // per sequence [tokens, heads, nope_dim + rope_dim], expanded
  std::vector<at::Tensor> c_kv, k_pe;  // [tokens, rank], [tokens, rope_dim]
  at::Tensor kv_b;                     // [heads, nope_dim + v_head_dim, rank]
  // Return the keys [tokens, heads, nope_dim + rope_dim] and values for `latents` [tokens, rank].
  at::Tensor ExpandedKeys(const at::Tensor& latents, const at::Tensor& position) const;
  at::Tensor ExpandedValues(const at::Tensor& latents) const;
};
GoldenLatents RandomLatents(int64_t heads, int64_t rank, const std::vector<int64_t>& lengths,
                            uint64_t seed);
ObservedLayer Observe(const GoldenLatents& layer, const HeldOutSplit& split, int64_t error_rows);

std::vector<double> Values(const at::Tensor& tensor);  // row-major

}  // namespace oscar
