// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Validates the CUDA kernels on a model. An observer sends each layer's queries, keys and values
// through the write and decode kernels, with the rotations and clip ratios of an artifact. It makes
// the member "validation.kernels" of the report (export/report/schema.md).
//
// Two errors are reported. One compares the kernel with exact attention over the kernel's own
// cache. The other compares it with exact attention over the model's unquantized keys and values.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/model/run/layer_loop.h"
#include "export/artifact/artifact_reader.h"
#include "export/validate/kernel_cache.h"
#include "export/validate/kernel_codec.h"

namespace oscar {

struct KernelValidationOptions {
  CacheWindows windows = {64, 256};
  int64_t quant_group_size = 0;  // values per scale; 0: the whole head
  int k_bits = 2, v_bits = 2;
  int64_t num_sequences = 0;  // only the first sequences of the run are checked
};

// Computes attention of one query per head over all tokens of a cache, in float64, including
// window, soft cap and attention sinks. This is the reference for the decode kernel.
//   q [num_kv_heads, gqa_ratio, head_dim], k [num_kv_heads, T, head_dim],
//   v [num_kv_heads, T, v_head_dim], sinks [num_q_heads] or undefined
//   -> [num_kv_heads, gqa_ratio, v_head_dim]
at::Tensor ExactAttention(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& sinks);

class KernelValidation : public LayerObserver {
 public:
  // Keeps a reference to `artifact`. Throws ResourceError if `device` is not a GPU.
  KernelValidation(const Artifact& artifact, at::Device device,
                   const KernelValidationOptions& options);

  void OnLayerBegin(const LayerSpec& layer) override;
  void OnAttention(const AttentionView& view) override;  // uses only stream 0

  Json Report() const;

 private:
  struct Squares {  // ||a - b||^2 and ||b||^2
    double error = 0, energy = 0;
    void Add(const Squares& other) {
      error += other.error;
      energy += other.energy;
    }
    double relative() const;
  };
  struct Head {
    CodecAgreement agreement;
    Squares kernel, total;
  };
  struct Layer {
    int layer_id = 0;
    double write_us = 0, decode_us = 0;  // shortest times over its sequences
    std::vector<Head> heads;
  };

  void CompareCodes(const KernelCache& cache, int64_t tokens);
  void CompareOutputs(const AttentionView& view, const at::Tensor& sinks, const KernelCache& cache,
                      const std::vector<int64_t>& lengths, const KernelCache::Decoded& decoded);

  const Artifact& artifact_;
  at::Device device_;
  KernelValidationOptions options_;
  CacheFormat format_;
  bool per_head_ = true;
  KernelRotations rotations_;
  std::map<int64_t, std::pair<int64_t, int64_t>> sequences_;  // tokens and queries of each
  std::vector<Layer> layers_;
};

}  // namespace oscar
