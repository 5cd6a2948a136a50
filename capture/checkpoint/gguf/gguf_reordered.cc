// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights that the converter split, joined or reordered in ways that no GgufRule expresses
// (modify_tensors in convert_hf_to_gguf.py). Each order here is a permutation that gives the source
// of every row of the dense tensor.
#include <fmt/format.h>

#include <numeric>

#include "capture/checkpoint/gguf/gguf_architectures.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

int64_t Signed(uint64_t count) { return static_cast<int64_t>(count); }

std::vector<int64_t> Range(int64_t first, int64_t count) {
  std::vector<int64_t> range(static_cast<size_t>(count));
  std::iota(range.begin(), range.end(), first);
  return range;
}

void Append(std::vector<int64_t>& order, int64_t first, int64_t count) {
  const std::vector<int64_t> range = Range(first, count);
  order.insert(order.end(), range.begin(), range.end());
}

// Heads of linear attention. In transformers, the value heads of one key head are neighbours.
// Qwen3.5's converter stores the first value head of every key head, then the second of every key
// head, and so on.
struct LinearHeads {
  int64_t k, v, k_dim, v_dim;

  int64_t per_key() const { return v / k; }
  // Row order with `dim` rows per value head, after `before` rows that keep their places.
  std::vector<int64_t> FromTiled(int64_t dim, int64_t before = 0) const {
    std::vector<int64_t> order = Range(0, before);
    for (int64_t head = 0; head < v; ++head)
      Append(order, before + (head % per_key() * k + head / per_key()) * dim, dim);
    return order;
  }
};

LinearHeads ReadLinearHeads(GgufFields& fields) {
  constexpr uint64_t kMost = 1 << 20;  // releases have some ten thousand values in total
  const uint64_t k = fields.NeedCount("ssm.group_count"),
                 v = fields.NeedCount("ssm.time_step_rank"),
                 k_dim = fields.NeedCount("ssm.state_size"),
                 inner = fields.NeedCount("ssm.inner_size");
  if (k == 0 || v < k || v % k != 0 || inner == 0 || inner % v != 0 || inner > kMost ||
      k_dim == 0 || k_dim > kMost / k)
    fields.model().Fail(
        "ssm.group_count must divide ssm.time_step_rank, which must divide ssm.inner_size");
  return {Signed(k), Signed(v), Signed(k_dim), Signed(inner / v)};
}

// Adds a convolution without the dimension of 1 that the converter dropped.
void AddConvolution(GgufWeightMaker& maker, uint64_t layer, std::vector<int64_t> order) {
  const std::string stored = GgufName(layer, "ssm_conv1d.weight");
  if (!maker.Has(stored)) return;
  GgufWeight& weight =
      maker.AddReordered(stored, DenseName(layer, "linear_attn.conv1d.weight"), std::move(order));
  weight.info.shape.insert(weight.info.shape.begin() + 1, 1);
}

}  // namespace

// Handles files in which gate and up share one tensor, an option of the converter.
void GgufFusedExperts(GgufFields& fields, GgufWeightMaker& maker) {
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    const std::string both = GgufName(i, "ffn_gate_up_exps.weight");
    if (!maker.Has(both)) continue;
    maker.Apply({}, both, DenseName(i, "mlp.experts.gate_up_proj"), fields);
    maker.Apply({}, GgufName(i, "ffn_down_exps.weight"), DenseName(i, "mlp.experts.down_proj"),
                fields);
  }
}

// in_proj_qkvz holds q, k, values and gates for each key head in turn. The file stores all q, then
// all k, then all values, and all gates in another tensor.
void GgufQwen3NextWeights(GgufFields& fields, GgufWeightMaker& maker) {
  GgufFusedExperts(fields, maker);
  const LinearHeads heads = ReadLinearHeads(fields);
  const int64_t keys = heads.k * heads.k_dim, values = heads.v * heads.v_dim;
  const int64_t of_head = heads.per_key() * heads.v_dim;
  std::vector<int64_t> order;
  for (int64_t head = 0; head < heads.k; ++head) {
    Append(order, head * heads.k_dim, heads.k_dim);
    Append(order, keys + head * heads.k_dim, heads.k_dim);
    Append(order, 2 * keys + head * of_head, of_head);
    Append(order, 2 * keys + values + head * of_head, of_head);
  }
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    AddConvolution(maker, i, {});
    if (!maker.Has(GgufName(i, "attn_qkv.weight"))) continue;
    std::vector<GgufWeight::Part> parts = {maker.Take(GgufName(i, "attn_qkv.weight")),
                                           maker.Take(GgufName(i, "attn_gate.weight"))};
    if (parts[0].rows != 2 * keys + values || parts[1].rows != values ||
        parts[0].columns != parts[1].columns)
      fields.model().Fail(
          fmt::format("attn_qkv and attn_gate of layer {} do not match the heads", i));
    const int64_t columns = parts[0].columns;
    maker
        .Add(DenseName(i, "linear_attn.in_proj_qkvz.weight"), {std::ssize(order), columns},
             std::move(parts))
        .row_order = order;
  }
}

void GgufQwen35Weights(GgufFields& fields, GgufWeightMaker& maker) {
  GgufFusedExperts(fields, maker);
  const LinearHeads heads = ReadLinearHeads(fields);
  const int64_t before = 2 * heads.k * heads.k_dim;
  const auto add = [&](uint64_t layer, const char* stored, const char* dense,
                       std::vector<int64_t> rows, std::vector<int64_t> columns = {}) {
    if (maker.Has(GgufName(layer, stored))) {
      maker.AddReordered(GgufName(layer, stored), DenseName(layer, dense), std::move(rows),
                         std::move(columns));
    }
  };
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    AddConvolution(maker, i, heads.FromTiled(heads.v_dim, before));
    add(i, "attn_qkv.weight", "linear_attn.in_proj_qkv.weight",
        heads.FromTiled(heads.v_dim, before));
    add(i, "attn_gate.weight", "linear_attn.in_proj_z.weight", heads.FromTiled(heads.v_dim));
    add(i, "ssm_beta.weight", "linear_attn.in_proj_b.weight", heads.FromTiled(1));
    add(i, "ssm_alpha.weight", "linear_attn.in_proj_a.weight", heads.FromTiled(1));
    add(i, "ssm_dt.bias", "linear_attn.dt_bias", heads.FromTiled(1));
    add(i, "ssm_out.weight", "linear_attn.out_proj.weight", {}, heads.FromTiled(heads.v_dim));
    if (maker.Has(GgufName(i, "ssm_a"))) {
      maker
          .AddReordered(GgufName(i, "ssm_a"), DenseName(i, "linear_attn.A_log"), heads.FromTiled(1))
          .change = GgufChange::kLogOfMinus;
    }
  }
}

// Rows of gate and up alternate, and matrices are transposed.
void GgufGptOssWeights(GgufFields& fields, GgufWeightMaker& maker) {
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    for (const bool bias : {false, true}) {
      const char* const ending = bias ? "bias" : "weight";
      const std::string gate = GgufName(i, fmt::format("ffn_gate_exps.{}", ending));
      const std::string up = GgufName(i, fmt::format("ffn_up_exps.{}", ending));
      if (!maker.Has(gate)) continue;
      const std::vector<uint64_t>& dims = fields.model().Find(gate)->dims;
      const std::vector<GgufWeight::Part> stored = {maker.Take(gate), maker.Take(up)};
      if (fields.model().Find(up)->dims != dims || dims.size() != (bias ? 2U : 3U))
        fields.model().Fail(fmt::format("the experts of layer {} have unexpected dimensions", i));
      std::vector<GgufWeight::Part> parts = stored;
      const int64_t experts = Signed(dims.back()), rows = Signed(bias ? dims[0] : dims[1]);
      for (GgufWeight::Part& part : parts) {
        if (bias && part.type->values != 1)
          fields.model().Fail(fmt::format("the biases of layer {} must be F32, F16 or BF16", i));
        part.rows = rows;
        part.columns = bias ? 1 : Signed(dims[0]);
      }
      std::vector<int64_t> shape = {experts, 2 * rows};
      if (!bias) shape.insert(shape.begin() + 1, Signed(dims[0]));
      GgufWeight& weight = maker.Add(
          DenseName(i, bias ? "mlp.experts.gate_up_proj_bias" : "mlp.experts.gate_up_proj"),
          std::move(shape), std::move(parts));
      weight.matrices = experts;
      weight.transposed = !bias;
      for (int64_t row = 0; row < rows; ++row)
        weight.row_order.insert(weight.row_order.end(), {row, rows + row});
    }
    const std::string down = GgufName(i, "ffn_down_exps.weight");
    if (!maker.Has(down)) continue;
    maker.Apply({}, down, DenseName(i, "mlp.experts.down_proj"), fields);
    maker.Transpose(DenseName(i, "mlp.experts.down_proj"));
  }
}

// For each head, kv_b_proj has the rows of keys and then those of values. The file stores the rows
// of keys transposed, and those of values in a separate tensor.
void GgufDeepSeekWeights(GgufFields& fields, GgufWeightMaker& maker) {
  for (uint64_t i = 0; i < fields.num_layers(); ++i) {
    const std::string k = GgufName(i, "attn_k_b.weight"), v = GgufName(i, "attn_v_b.weight");
    if (!maker.Has(k)) continue;
    std::vector<GgufWeight::Part> parts = {maker.Take(k), maker.Take(v)};
    const std::vector<uint64_t>&k_dims = fields.model().Find(k)->dims,
          &v_dims = fields.model().Find(v)->dims;
    if (k_dims.size() != 3 || v_dims.size() != 3 || k_dims[1] != v_dims[0] ||
        k_dims[2] != v_dims[2])
      fields.model().Fail(
          fmt::format("attn_k_b and attn_v_b of layer {} do not match each other", i));
    const int64_t nope = Signed(k_dims[0]), rank = Signed(k_dims[1]), heads = Signed(k_dims[2]);
    const int64_t value = Signed(v_dims[1]);
    parts[0].rows = heads * rank;
    parts[0].heads = heads;
    parts[1].rows = heads * value;
    GgufWeight& weight = maker.Add(DenseName(i, "self_attn.kv_b_proj.weight"),
                                   {heads * (nope + value), rank}, std::move(parts));
    for (int64_t head = 0; head < heads; ++head) {
      Append(weight.row_order, head * nope, nope);
      Append(weight.row_order, heads * nope + head * value, value);
    }
  }
}

}  // namespace oscar
