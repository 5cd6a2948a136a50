// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer's cache for the operators of liboscar_torch.so, one view per set of heads, as a runtime
// would hold it; and the same layer as the simulators compute it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "calib/cache_side.h"
#include "export/torch/view_tensors.h"

namespace oscar {

// How a layer is stored.
struct LayerFormat {
  CacheSide k, v;
  AffineQuantizer k_codes, v_codes;
  std::vector<at::Tensor> k_feedback, v_feedback;  // [dim, dim] float32 a head, or none
  int64_t num_kv_heads = 2, gqa_ratio = 2;
  int64_t page_tokens = 16, sink = 16, recent = 24, recent_slots = 48, step = 8;
};

// Random rotations, means and clip ratios a head.
struct SideRecipe {
  std::vector<int> bits = {2};
  int64_t dim = 64, quant_group_size = 0;
  bool per_head = true, mean = false, own_queries = false, feedback = false;
  ScaleFit scales = ScaleFit::kRange;
  MetadataType metadata = MetadataType::kFloat32;
  std::vector<double> clip = {0};
};
LayerFormat MakeLayer(const SideRecipe& k, const SideRecipe& v, int64_t num_kv_heads = 2);

// Calls an operator of the library, which it loads; returns its results.
std::vector<c10::IValue> CallOperator(const std::string& name, std::vector<c10::IValue> arguments);

struct AttentionRule {
  double softcap = 0;
  int64_t window = 0;
  at::Tensor sinks = {};
  bool exact_chunk = false;
};

// Requests of one layer.
class OperatorCache {
 public:
  OperatorCache(const LayerFormat& layer, int64_t num_requests, int64_t max_tokens);

  // Appends counts[r] rows to every request, k and v [rows, heads, dim], request by request, and
  // answers q [rows, query heads, dim]: what attention reads of it, in rotated space, float32.
  at::Tensor Step(const std::vector<int64_t>& counts, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& q, const AttentionRule& rule = {});
  void Crop(int64_t tokens);  // of every request

  // How `write` is told to store a view's sides.
  WriteTensors WriteSides(size_t view) const;

  // The rows that each request's last query reads, rotated: [requests, heads, max_tokens, dim].
  at::Tensor Read(bool values) const;
  int64_t bad_rows() const;
  int64_t length(int64_t request) const;
  at::Tensor PageOf(size_t view, int64_t request, int64_t page) const;  // bytes
  at::Tensor Window(size_t view, int64_t request) const;
  ViewTensors Tensors(size_t view) const;  // of the view, not copies

 private:
  struct View {
    std::vector<int64_t> format, head_list;
    at::Tensor pages = {}, windows = {}, heads = {}, page_table = {};
    std::vector<c10::IValue> k_side = {}, v_side = {};
  };
  LayerFormat layer_;
  int64_t max_tokens_;
  std::vector<View> views_;
  at::Tensor state_, window_of_request_, bad_rows_;
};

// Rows of a whole sequence as simulators turn them, [heads, tokens, dim] float32, and what is read
// of them once they are quantized.
struct SimulatedRows {
  at::Tensor exact, stored;
};
SimulatedRows Simulate(const LayerFormat& layer, bool values, const at::Tensor& rows);

}  // namespace oscar
