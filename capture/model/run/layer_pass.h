// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One run of LayerLoop: applies a layer to the hidden states of all tokens, one span of sequences
// after another, and then the layer's experts to all tokens at once. A layer without a cache runs
// in the same way, but observers do not get OnAttention for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "capture/model/run/embedding.h"
#include "capture/model/run/latent_attention.h"
#include "capture/model/run/layer_loop.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/run/token_layout.h"

namespace oscar {

class LayerPass {
 public:
  // Keeps references to all arguments. All streams except the first lack the first `lead_tokens`
  // tokens and may end before the last sequences. No span crosses the start or end of a stream.
  LayerPass(const LayerLoop& loop, std::span<at::Tensor> streams,
            const std::vector<int64_t>& sequence_lengths, int64_t lead_tokens, size_t first_layer,
            LayerObserver& observer);

  // `weights` just came from `weight_stream`, which provides the layer's experts next.
  void RunLayer(const LayerSpec& layer, size_t layer_index, LayerWeights weights,
                WeightStream& weight_stream, const std::vector<Span>& spans);

 private:
  // Keys and values that later layers also read.
  struct SharedKv {
    at::Tensor k, v;  // [T_stream, num_kv_heads, ..]
  };
  struct Heads {
    at::Tensor q, k, v, attn_out;
  };
  // Tensors for one span.
  struct Tensors : Heads {
    Latents latents;                // for latent attention
    std::vector<at::Tensor> gates;  // one per token chunk
  };

  void PrepareSharing(size_t first_layer);
  at::Tensor Empty(at::IntArrayRef shape) const;
  void RunSpan(const LayerSpec& layer, size_t layer_index, const LayerWeights& weights,
               const Span& span, size_t stream, int64_t first_row, const at::Tensor& inputs);
  void RunDeltaNet(const LayerSpec& layer, const LayerWeights& weights, const Span& span,
                   size_t stream, int64_t first_row, const at::Tensor& inputs);
  void RunExperts(const LayerSpec& layer, LayerWeights weights, WeightStream& weight_stream,
                  const std::vector<Span>& spans, const at::Tensor& inputs);
  Tensors Project(const LayerSpec& layer, const LayerWeights& weights, const Span& span,
                  size_t stream, int64_t first_row) const;
  std::pair<at::Tensor, at::Tensor> Absorbed(const LayerSpec& layer, const at::Tensor& kv_b,
                                             const at::Tensor& q) const;
  void Keep(SharedKv& kept, int64_t first_row, const Tensors& all) const;
  void Attend(const LayerSpec& layer, size_t layer_index, const LayerWeights& weights,
              const Span& span, size_t stream, const Tensors& all);

  const LayerLoop& loop_;
  const ModelSpec& spec_;
  std::span<at::Tensor> streams_;
  const std::vector<int64_t>& lengths_;
  int64_t lead_tokens_;
  LayerObserver& observer_;
  RopePositions positions_;
  std::map<int, std::vector<SharedKv>> shared_;  // keyed by layer_id of the owner, then by stream
  std::optional<PerLayerInputs> inputs_;
};

}  // namespace oscar
