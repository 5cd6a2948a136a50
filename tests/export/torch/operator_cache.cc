// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/torch/operator_cache.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/side_tensors.h"
#include "linalg/error_feedback.h"

namespace oscar {
namespace {

std::vector<double> Values(const at::Tensor& t) {
  const at::Tensor flat = t.to(at::kDouble).contiguous();
  const auto* const data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

int64_t GroupOf(const AffineQuantizer& codes, const CacheSide& side) {
  return codes.quant_group_size == 0 ? side.dim : codes.quant_group_size;
}

int BitsOf(const AffineQuantizer& codes, int64_t head) {
  return codes.bits.size() == 1 ? codes.bits[0] : codes.bits[static_cast<size_t>(head)];
}

Matrix MatrixOf(const at::Tensor& t) {
  const at::Tensor column_major = t.to(at::kDouble).t().contiguous();
  return Eigen::Map<const Matrix>(column_major.const_data_ptr<double>(), t.size(0), t.size(1));
}

}  // namespace

LayerFormat MakeLayer(const SideRecipe& k, const SideRecipe& v, int64_t num_kv_heads) {
  LayerFormat layer;
  layer.num_kv_heads = num_kv_heads;
  const auto make = [&](const SideRecipe& recipe, CacheSide& side, AffineQuantizer& codes,
                        std::vector<at::Tensor>& feedback) {
    const int64_t dim = recipe.dim, matrices = recipe.per_head ? num_kv_heads : 1;
    at::Tensor rotation = std::get<0>(at::linalg_qr(at::randn({matrices, dim, dim}, at::kDouble)));
    if (recipe.own_queries) {
      rotation = rotation.mul(at::rand({1, dim}, at::kDouble).add_(.5));
      side.query_rotation = Values(at::linalg_inv(rotation).transpose(1, 2));
    }
    side.num_rotations = matrices;
    side.dim = dim;
    side.rotation = Values(rotation);
    if (recipe.mean) side.mean = Values(at::randn({num_kv_heads, dim}));
    codes = {.bits = recipe.bits,
             .clip = recipe.clip,
             .quant_group_size = recipe.quant_group_size,
             .scales = recipe.scales,
             .metadata = recipe.metadata};
    for (int64_t h = 0; recipe.feedback && h < num_kv_heads; ++h) {
      const at::Tensor x = at::randn({2 * dim, dim}, at::kDouble);
      const Matrix factor = FeedbackFactor(MatrixOf(x.t().matmul(x)), 0.1, "test");
      const at::Tensor t = at::empty({dim, dim}, at::kDouble);
      Eigen::Map<Matrix>(t.mutable_data_ptr<double>(), dim, dim) = factor.transpose();
      feedback.push_back(t.to(at::kFloat));
    }
  };
  make(k, layer.k, layer.k_codes, layer.k_feedback);
  make(v, layer.v, layer.v_codes, layer.v_feedback);
  return layer;
}

std::vector<c10::IValue> CallOperator(const std::string& name, std::vector<c10::IValue> arguments) {
  static void* const library = dlopen(OSCAR_TORCH_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  EXPECT_NE(library, nullptr) << dlerror();
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("oscar::" + name).c_str(), "")
      .callBoxed(&arguments);
  return arguments;
}

OperatorCache::OperatorCache(const LayerFormat& layer, int64_t num_requests, int64_t max_tokens)
    : layer_(layer),
      max_tokens_(max_tokens),
      state_(at::zeros({4, num_requests}, at::kInt)),
      window_of_request_(at::randperm(num_requests, at::kInt)),
      bad_rows_(at::zeros({1}, at::kInt)) {
  std::map<std::pair<int, int>, std::vector<int64_t>> heads_of_bits;
  for (int64_t h = 0; h < layer.num_kv_heads; ++h)
    heads_of_bits[{BitsOf(layer.k_codes, h), BitsOf(layer.v_codes, h)}].push_back(h);
  for (const auto& [bits, heads] : heads_of_bits) {
    const int64_t pages = (max_tokens + layer.page_tokens - 1) / layer.page_tokens;
    View view{.format = {layer.k.dim, bits.first, GroupOf(layer.k_codes, layer.k), layer.v.dim,
                         bits.second, GroupOf(layer.v_codes, layer.v),
                         static_cast<int64_t>(layer.k_codes.metadata), layer.page_tokens,
                         layer.sink, layer.recent_slots, layer.recent, layer.step},
              .head_list = heads};
    const auto made =
        CallOperator("make_cache", {view.format, std::ssize(heads), num_requests * pages,
                                    num_requests, c10::Device(at::kCPU)});
    view.pages = made[0].toTensor();
    view.windows = made[1].toTensor();
    view.page_table = at::randperm(num_requests * pages, at::kInt).view({num_requests, pages});
    const at::Tensor own = at::tensor(heads, at::kLong);
    if (heads_of_bits.size() > 1) view.heads = own;
    const auto side = [&](const CacheSide& of, const AffineQuantizer& codes,
                          const std::vector<at::Tensor>& feedback) {
      at::Tensor rotation = RotationTensor(of).to(at::kBFloat16);
      if (of.num_rotations > 1) rotation = rotation.index_select(0, own);
      std::vector<double> clip = codes.clip;
      if (clip.size() > 1) {
        clip.clear();
        for (const int64_t head : heads) clip.push_back(codes.clip[static_cast<size_t>(head)]);
      }
      c10::IValue mean, columns, units;
      if (!of.mean.empty()) mean = MatricesOf(of.mean, 1, of.dim).squeeze(1).index_select(0, own);
      if (!feedback.empty()) {
        std::vector<at::Tensor> packed;
        std::vector<float> unit;
        for (const int64_t head : heads) {
          PackedFeedback p = PackFeedbackFactor(MatrixOf(feedback[static_cast<size_t>(head)]));
          packed.push_back(
              at::from_blob(p.columns.data(), {of.dim, of.dim + 16}, at::kChar).clone());
          unit.push_back(p.unit);
        }
        columns = at::stack(packed);
        units = at::tensor(unit);
      }
      return std::vector<c10::IValue>{rotation, mean, clip, static_cast<int64_t>(codes.scales),
                                      columns,  units};
    };
    view.k_side = side(layer.k, layer.k_codes, layer.k_feedback);
    view.v_side = side(layer.v, layer.v_codes, layer.v_feedback);
    views_.push_back(std::move(view));
  }
}

at::Tensor OperatorCache::Step(const std::vector<int64_t>& counts, const at::Tensor& k,
                               const at::Tensor& v, const at::Tensor& q,
                               const AttentionRule& rule) {
  const int64_t most = std::ranges::max(counts);
  const at::Tensor rows = at::tensor(counts, at::kInt);
  const at::Tensor row_begin = at::cat({at::zeros({1}, at::kInt), rows.cumsum(0).to(at::kInt)});
  CallOperator("advance", {state_, rows, views_[0].format});
  CacheSide of_queries = layer_.k;
  if (!layer_.k.query_rotation.empty()) of_queries.rotation = layer_.k.query_rotation;
  const at::Tensor turned =
      CallOperator("rotate_queries", {q, RotationTensor(of_queries).to(at::kBFloat16)})[0]
          .toTensor();
  const at::Tensor out = at::full({q.size(0), q.size(1), layer_.v.dim}, NAN);
  for (const View& view : views_) {
    const auto heads = view.heads.defined() ? c10::IValue(view.heads) : c10::IValue();
    const auto where = [&](std::vector<c10::IValue> begin, std::vector<c10::IValue> end) {
      begin.insert(begin.end(), {state_, view.page_table, window_of_request_, view.format, heads});
      begin.insert(begin.end(), end.begin(), end.end());
      return begin;
    };
    std::vector<c10::IValue> write =
        where({view.pages, view.windows, bad_rows_}, {k, v, row_begin, most, most > 1 ? most : 0});
    write.insert(write.end(), view.k_side.begin(), view.k_side.end());
    write.insert(write.end(), view.v_side.begin(), view.v_side.end());
    const auto tails = CallOperator("write", write);
    CallOperator("attend",
                 where({out, turned, view.pages, view.windows},
                       {row_begin, most, max_tokens_, layer_.gqa_ratio, 0.125, rule.softcap,
                        rule.window, rule.sinks.defined() ? c10::IValue(rule.sinks) : c10::IValue(),
                        rule.exact_chunk, tails[0], tails[1]}));
  }
  return out;
}

void OperatorCache::Crop(int64_t tokens) {
  state_[0].sub_(tokens);
  CallOperator("advance", {state_, at::zeros({state_.size(1)}, at::kInt), views_[0].format});
}

at::Tensor OperatorCache::Read(bool values) const {
  at::Tensor sum;
  for (const View& view : views_) {
    const auto rows = CallOperator(
        "read", {view.pages, view.windows, state_, view.page_table, window_of_request_, view.format,
                 view.heads.defined() ? c10::IValue(view.heads) : c10::IValue(),
                 layer_.num_kv_heads, max_tokens_});
    const at::Tensor side = rows[values ? 1 : 0].toTensor();
    sum = sum.defined() ? sum.add(side) : side;
  }
  return sum;
}

ViewTensors OperatorCache::Tensors(size_t view) const {
  const View& of = views_[view];
  return MakeView(of.pages, of.windows, state_, of.page_table, window_of_request_, of.format,
                  of.heads.defined() ? std::optional(of.heads) : std::nullopt);
}

WriteTensors OperatorCache::WriteSides(size_t view) const {
  WriteTensors write;
  for (int s = 0; s < 2; ++s) {
    const std::vector<c10::IValue>& side = s == 0 ? views_[view].k_side : views_[view].v_side;
    const auto tensor = [&](size_t i) {
      return side[i].isNone() ? at::Tensor() : side[i].toTensor();
    };
    write.sides[s] = {
        tensor(0), tensor(1), side[2].toDoubleVector(), static_cast<ScaleFit>(side[3].toInt()),
        tensor(4), tensor(5)};
  }
  write.bad_rows = bad_rows_;
  return write;
}

int64_t OperatorCache::bad_rows() const { return bad_rows_.item<int>(); }
int64_t OperatorCache::length(int64_t request) const { return state_[0][request].item<int>(); }

at::Tensor OperatorCache::PageOf(size_t view, int64_t request, int64_t page) const {
  return views_[view].pages[views_[view].page_table[request][page].item<int>()];
}
at::Tensor OperatorCache::Window(size_t view, int64_t request) const {
  return views_[view].windows[window_of_request_[request].item<int>()];
}

SimulatedRows Simulate(const LayerFormat& layer, bool values, const at::Tensor& rows) {
  const CacheSide& side = values ? layer.v : layer.k;
  const std::vector<at::Tensor>& feedback = values ? layer.v_feedback : layer.k_feedback;
  const SidesOnDevice on_device = OneSide(side, at::kCPU);
  const at::Tensor exact = values ? ValuesOfOne(on_device, rows) : KeysOfOne(on_device, rows);
  return {exact, QuantizedRows(exact, values ? layer.v_codes : layer.k_codes, {}, false,
                               feedback.empty() ? at::Tensor() : at::stack(feedback))};
}

}  // namespace oscar
