// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer's cache for the operators of liboscar_torch.so, as a runtime would hold it: heads with
// the same bits share a view. Also computes the same layer with the simulators.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "calib/cache_side.h"
#include "export/torch/view_tensors.h"

namespace oscar {

// The rotations, codes and cache sizes of one layer.
struct LayerFormat {
  CacheSide k, v;
  AffineQuantizer k_codes, v_codes;
  std::vector<at::Tensor> k_feedback, v_feedback;  // [dim, dim] float32 per head, or empty
  int64_t num_kv_heads = 2, gqa_ratio = 2;
  int64_t page_tokens = 16, sink = 16, recent = 24, recent_slots = 48, step = 8;
};

// One side of MakeLayer(), which draws random rotations, means and feedback factors.
struct SideRecipe {
  std::vector<int> bits = {2};
  int64_t dim = 64, quant_group_size = 0;
  bool per_head = true, mean = false, own_queries = false, feedback = false;
  ScaleFit scales = ScaleFit::kRange;
  MetadataType metadata = MetadataType::kFloat32;
  std::vector<double> clip = {0};
};
LayerFormat MakeLayer(const SideRecipe& k, const SideRecipe& v, int64_t num_kv_heads = 2);

// Loads the library on the first call, calls one of its operators and returns the results.
std::vector<c10::IValue> CallOperator(const std::string& name, std::vector<c10::IValue> arguments);

struct AttentionRule {
  double softcap = 0;
  int64_t window = 0;
  at::Tensor sinks = {};
  bool exact_chunk = false;
};

// The cache of one layer for several requests.
class OperatorCache {
 public:
  OperatorCache(const LayerFormat& layer, int64_t num_requests, int64_t max_tokens);

  // Appends counts[r] rows to each request r and returns the attention outputs of these rows,
  // float32 in rotated space. k and v [rows, heads, dim] and q [rows, query heads, dim] hold the
  // requests one after another.
  at::Tensor Step(const std::vector<int64_t>& counts, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& q, const AttentionRule& rule = {});
  void Crop(int64_t tokens);  // drops the last tokens of every request

  // Returns the arguments with which `write` stores the sides of a view.
  WriteTensors WriteSides(size_t view) const;

  // Returns [requests, heads, max_tokens, dim]: the rotated rows that the last query of each
  // request reads.
  at::Tensor Read(bool values) const;
  int64_t bad_rows() const;
  int64_t length(int64_t request) const;
  at::Tensor PageOf(size_t view, int64_t request, int64_t page) const;  // bytes
  at::Tensor Window(size_t view, int64_t request) const;
  ViewTensors Tensors(size_t view) const;  // the tensors of the view, not copies

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

// Rotated rows of a whole sequence from the simulators, [heads, tokens, dim] float32: before
// quantization, and as read back after it.
struct SimulatedRows {
  at::Tensor exact, stored;
};
SimulatedRows Simulate(const LayerFormat& layer, bool values, const at::Tensor& rows);

}  // namespace oscar
