// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A projection weight is W [out_features, in_features], so its rows are the outputs.
#include "export/fold/weight_edits.h"

#include <fmt/format.h>

#include <utility>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

class Edits {
 public:
  Edits(const LayerSpec& layer, const LayerFold& fold)
      : layer_(layer), attention_(layer.attention), fold_(fold) {}

  std::map<std::string, WeightEdit> All() {
    if (!fold_.key_scales.empty()) Keys();
    if (!fold_.values.empty()) Values();
    return std::move(edits_);
  }

 private:
  void Add(const std::string& name, const WeightEdit& edit) {
    if (name.empty()) return;  // a projection without a bias
    const bool added = edits_.emplace(name, edit).second;
    OSCAR_CHECK(added);
  }

  const Vector& ScalesOf(int64_t kv_head) const {
    const auto& scales = fold_.key_scales;
    return scales[scales.size() == 1 ? 0 : static_cast<size_t>(kv_head)];
  }

  void CheckScales() const {
    const size_t count = fold_.key_scales.size();
    if (attention_.qk_norm && count != 1) {
      throw UsageError(
          fmt::format("layer {}: its QK-norm has one weight for all heads, so key scales cannot "
                      "differ by head, but {} sets of scales were given",
                      layer_.layer_id, count));
    }
    OSCAR_CHECK(count == 1 || count == static_cast<size_t>(attention_.num_kv_heads));
    const RopePairs pairs{attention_.rope.rotary_dim,
                          attention_.rope.layout == RopeLayout::kInterleaved};
    for (const Vector& d : fold_.key_scales) {
      OSCAR_CHECK_EQ(d.size(), attention_.head_dim);
      for (int64_t i = 0; i < attention_.head_dim; ++i) {
        if (d[i] == d[pairs.Partner(i)]) continue;
        throw UsageError(
            fmt::format("layer {}: scales {:g} and {:g} of channels {} and {} do not commute with "
                        "rope, which rotates the two as a pair",
                        layer_.layer_id, d[i], d[pairs.Partner(i)], i, pairs.Partner(i)));
      }
    }
  }

  void Keys() {
    CheckScales();
    if (attention_.qk_norm) {
      const Vector d = fold_.key_scales[0];
      Add(attention_.k_norm.weight, [d](WeightMatrix& w) { w.col(0).array() *= d.array(); });
      Add(attention_.q_norm.weight, [d](WeightMatrix& w) { w.col(0).array() /= d.array(); });
      return;
    }
    const int64_t dim = attention_.head_dim;
    Vector k(attention_.num_kv_heads * dim), q(attention_.num_q_heads * dim);
    for (int64_t head = 0; head < attention_.num_kv_heads; ++head)
      k.segment(head * dim, dim) = ScalesOf(head);
    for (int64_t head = 0; head < attention_.num_q_heads; ++head)
      q.segment(head * dim, dim) = ScalesOf(head / attention_.gqa_ratio()).cwiseInverse();
    for (const auto& [linear, rows] : {std::pair(&attention_.k, k), std::pair(&attention_.q, q)}) {
      // Clang 14 cannot capture structured bindings, so `rows` is copied.
      const WeightEdit scale = [rows = rows](WeightMatrix& w) { w = rows.asDiagonal() * w; };
      Add(linear->weight, scale);
      Add(linear->bias, scale);
    }
  }

  // Folds X into both projections: v X = x (X^T W_v)^T, and o' X^-1 W_o^T = o' (W_o X^-T)^T.
  void Values() {
    OSCAR_CHECK_EQ(std::ssize(fold_.values), attention_.num_kv_heads);
    const int64_t dim = attention_.v_head_dim, ratio = attention_.gqa_ratio();
    const std::vector<KeyTransform> values = fold_.values;
    const int64_t first = attention_.v.first_row;
    const int64_t step = attention_.v.piece_rows > 0 ? attention_.v.piece_step : dim;
    const WeightEdit rows = [values, dim, first, step](WeightMatrix& w) {
      for (int64_t head = 0; head < std::ssize(values); ++head) {
        const Matrix& x = values[static_cast<size_t>(head)].x;
        auto of_head = w.middleRows(first + head * step, dim);
        of_head = (x.transpose() * of_head).eval();
      }
    };
    Add(attention_.v.weight, rows);
    Add(attention_.v.bias, rows);
    Add(attention_.o.weight, [values, dim, ratio](WeightMatrix& w) {
      for (int64_t head = 0; head < std::ssize(values) * ratio; ++head) {
        const Matrix& inverse = values[static_cast<size_t>(head / ratio)].inverse;
        auto of_head = w.middleCols(head * dim, dim);
        of_head = (of_head * inverse.transpose()).eval();
      }
    });
  }

  const LayerSpec& layer_;
  const AttentionSpec& attention_;
  const LayerFold& fold_;
  std::map<std::string, WeightEdit> edits_;
};

}  // namespace

std::map<std::string, WeightEdit> WeightEdits(const LayerSpec& layer, const LayerFold& fold) {
  return Edits(layer, fold).All();
}

}  // namespace oscar
