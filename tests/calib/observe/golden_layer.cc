// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/calib/observe/golden_layer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>

#include "capture/model/run/latent_attention.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Returns softmax(scale q kᵀ + mask) v, where query head j reads KV head j / gqa_ratio.
at::Tensor Attention(const LayerSpec& spec, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v) {
  const int64_t ratio = spec.attention.gqa_ratio(), tokens = q.size(0);
  const at::Tensor keys = k.repeat_interleave(ratio, 1).permute({1, 2, 0});
  const at::Tensor values = v.repeat_interleave(ratio, 1).permute({1, 0, 2});
  const at::Tensor age = at::arange(tokens).unsqueeze(1) - at::arange(tokens).unsqueeze(0);
  at::Tensor visible = age.ge(0);
  if (spec.attention.window) visible = visible.logical_and(age.lt(*spec.attention.window));
  const at::Tensor logits = q.permute({1, 0, 2}).matmul(keys).mul(spec.attention.scale);
  return logits.masked_fill(visible.logical_not(), -INFINITY)
      .softmax(-1)
      .matmul(values)
      .permute({1, 0, 2})
      .contiguous();
}

void SetGeometry(LayerSpec& spec, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  spec.attention.num_q_heads = q.size(1);
  spec.attention.num_kv_heads = k.size(1);
  spec.attention.head_dim = q.size(2);
  spec.attention.v_head_dim = v.size(2);
  spec.attention.scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
}

}  // namespace

at::Tensor ReadFloat64(const SafetensorsFile& file, const std::string& name) {
  const TensorView view = file.tensor(name);
  at::ScalarType dtype = at::kFloat;
  if (view.dtype == DType::kBF16) dtype = at::kBFloat16;
  if (view.dtype == DType::kF64) dtype = at::kDouble;
  at::Tensor tensor = at::empty(view.shape, at::TensorOptions().dtype(dtype));
  OSCAR_CHECK_EQ(tensor.nbytes(), view.data.size());
  std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
  return tensor.to(at::kDouble);
}

GoldenLayer ReadGoldenLayer(const SafetensorsFile& file, int layer_id) {
  const std::string prefix = "layer." + std::to_string(layer_id) + ".";
  GoldenLayer layer;
  layer.spec.layer_id = layer_id;
  layer.q = {ReadFloat64(file, prefix + "q")};
  layer.k = {ReadFloat64(file, prefix + "k")};
  layer.v = {ReadFloat64(file, prefix + "v")};
  SetGeometry(layer.spec, layer.q[0], layer.k[0], layer.v[0]);
  layer.attn_out = {Attention(layer.spec, layer.q[0], layer.k[0], layer.v[0])};
  return layer;
}

GoldenLayer RandomLayer(int64_t num_q_heads, int64_t num_kv_heads, int64_t d, int64_t dv,
                        const std::vector<int64_t>& lengths, std::optional<int64_t> window,
                        uint64_t seed) {
  at::manual_seed(seed);
  GoldenLayer layer;
  layer.spec.layer_id = 3;
  layer.spec.attention.window = window;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor mix_k = at::randn({d, d}, options).div(std::sqrt(static_cast<double>(d)));
  const at::Tensor mix_v = at::randn({dv, dv}, options).div(std::sqrt(static_cast<double>(dv)));
  for (int64_t tokens : lengths) {
    layer.q.push_back(at::randn({tokens, num_q_heads, d}, options).matmul(mix_k).mul(2));
    layer.k.push_back(at::randn({tokens, num_kv_heads, d}, options).matmul(mix_k).add(0.2));
    layer.v.push_back(at::randn({tokens, num_kv_heads, dv}, options).matmul(mix_v));
    SetGeometry(layer.spec, layer.q[0], layer.k[0], layer.v[0]);
    layer.attn_out.push_back(Attention(layer.spec, layer.q.back(), layer.k.back(), layer.v.back()));
  }
  return layer;
}

ObservedLayer Observe(const GoldenLayer& layer, const HeldOutSplit& split, int64_t error_rows) {
  StatisticsObserver observer(split, error_rows);
  observer.OnLayerBegin(layer.spec);
  int64_t first = 0;
  for (size_t i = 0; i < layer.q.size(); ++i) {
    observer.OnAttention({.layer = layer.spec,
                          .layer_index = 0,
                          .sequence = static_cast<int64_t>(i),
                          .first_token = first,
                          .q = layer.q[i],
                          .k = layer.k[i],
                          .v = layer.v[i],
                          .attn_out = layer.attn_out[i]});
    first += layer.q[i].size(0);
  }
  observer.OnLayerEnd(layer.spec);
  return observer.TakeLayer(layer.spec);
}

at::Tensor GoldenLatents::ExpandedKeys(const at::Tensor& latents,
                                       const at::Tensor& position) const {
  const int64_t nope = spec.attention.latent->nope_dim, heads = kv_b.size(0);
  const at::Tensor keys = at::einsum("tr,hnr->thn", {latents, kv_b.narrow(1, 0, nope)});
  return at::cat({keys, position.unsqueeze(1).expand({-1, heads, -1})}, 2);
}

at::Tensor GoldenLatents::ExpandedValues(const at::Tensor& latents) const {
  const int64_t nope = spec.attention.latent->nope_dim;
  return at::einsum("tr,hnr->thn", {latents, kv_b.narrow(1, nope, kv_b.size(1) - nope)});
}

GoldenLatents RandomLatents(int64_t heads, int64_t rank, const std::vector<int64_t>& lengths,
                            uint64_t seed) {
  constexpr int64_t kNope = 6, kRope = 4, kValue = 5;
  at::manual_seed(seed);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  GoldenLatents layer;
  layer.spec.layer_id = 3;
  AttentionSpec& attention = layer.spec.attention;
  attention.num_q_heads = attention.num_kv_heads = heads;
  attention.head_dim = kNope + kRope;
  attention.v_head_dim = kValue;
  attention.scale = 0.3;
  attention.rope.rotary_dim = kRope;
  attention.latent = LatentSpec();
  attention.latent->rank = rank;
  attention.latent->nope_dim = kNope;
  attention.latent->rope_dim = kRope;
  attention = InLatentSpace(attention);
  layer.kv_b = at::randn({heads, kNope + kValue, rank}, options).div(2);
  const at::Tensor mix = at::randn({rank, rank}, options).div(std::sqrt(static_cast<double>(rank)));
  for (const int64_t tokens : lengths) {
    layer.q.push_back(at::randn({tokens, heads, kNope + kRope}, options));
    layer.c_kv.push_back(at::randn({tokens, rank}, options).matmul(mix).add(0.3));
    layer.k_pe.push_back(at::randn({tokens, kRope}, options));
  }
  return layer;
}

ObservedLayer Observe(const GoldenLatents& layer, const HeldOutSplit& split, int64_t error_rows) {
  StatisticsObserver observer(split, error_rows);
  observer.OnLayerBegin(layer.spec);
  int64_t first = 0;
  for (size_t i = 0; i < layer.q.size(); ++i) {
    const auto [q, q_pe] =
        QueriesInLatentSpace(*layer.spec.attention.latent, layer.kv_b, layer.q[i]);
    const at::Tensor k = layer.c_kv[i].unsqueeze(1);
    const at::Tensor out =
        Attention(layer.spec, WithPosition(q, q_pe), WithPosition(k, layer.k_pe[i]), k);
    observer.OnAttention({.layer = layer.spec,
                          .layer_index = 0,
                          .sequence = static_cast<int64_t>(i),
                          .first_token = first,
                          .q = q,
                          .k = k,
                          .v = k,
                          .attn_out = out,
                          .c_kv = layer.c_kv[i],
                          .k_pe = layer.k_pe[i],
                          .q_pe = q_pe,
                          .kv_b = layer.kv_b});
    first += layer.q[i].size(0);
  }
  observer.OnLayerEnd(layer.spec);
  return observer.TakeLayer(layer.spec);
}

std::vector<double> Values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

}  // namespace oscar
