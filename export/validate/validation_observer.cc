// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See validation_observer.h.
#include "export/validate/validation_observer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "export/evaluate/position_buckets.h"
#include "export/validate/mixed_attention.h"
#include "linalg/check.h"

namespace oscar {
namespace {

// Of one score matrix: large enough to keep a GPU busy, small enough for a CPU's caches.
int64_t ScoreBytes(at::Device device) { return device.is_cpu() ? 16 << 20 : 256 << 20; }

}  // namespace

ValidationObserver::ValidationObserver(const MethodContext& context, const std::vector<Arm>& arms,
                                       const MeasuredRows& rows, const Options& options)
    : context_(context), arms_(arms), rows_(rows), options_(options) {
  OSCAR_CHECK(arms.size() > 1 && arms[0].is_reference());
  std::map<std::pair<const CacheMethod*, bool>, size_t> group_of;
  for (size_t arm = 1; arm < arms.size(); ++arm) {
    const auto [entry, fresh] =
        group_of.emplace(std::pair(arms[arm].method, arms[arm].clip), groups_.size());
    if (fresh) groups_.emplace_back();
    groups_[entry->second].arms.push_back(arm);
    groups_[entry->second].windows.push_back(WindowsOf(arms[arm]));
  }
  for (const MeasuredRow& row : rows.rows) positions_[row.sequence].push_back(row.position);
  for (const Arm& arm : arms) {
    local_.emplace_back(arm.name, rows);
    if (options.end_to_end) end_to_end_.emplace_back(arm.name + " end to end", rows);
  }
}

void ValidationObserver::OnLayerBegin(const LayerSpec& layer) {
  layer_index_ = layers_seen_++;
  OSCAR_CHECK_EQ(context_.layers()[layer_index_].layer_id, layer.layer_id);
  caches_.clear();
  for (const Arm& arm : arms_)
    caches_.push_back(arm.method->make(context_, layer_index_, arm.clip));
  for (ArmErrors& errors : local_) errors.BeginLayer(layer);
  for (ArmErrors& errors : end_to_end_) errors.BeginLayer(layer);
}

bool ValidationObserver::Attend(const AttentionView& view) {
  if (view.stream == 0) return false;
  const Arm& arm = arms_[view.stream];
  const LayerCache& cache = caches_[view.stream];
  const at::Tensor k_stored = cache.k(view.k), v_stored = cache.v(view.v);
  at::Tensor out = view.attn_out;
  const auto dtype = view.q.scalar_type();
  MixedAttention(view.layer.attention, WindowsOf(arm), view.q, view.k, view.v, k_stored.to(dtype),
                 v_stored.to(dtype), out);
  if (positions_.contains(view.sequence))
    pending_[view.sequence].push_back({view.q, view.k, view.v, k_stored, v_stored});
  return true;
}

void ValidationObserver::OnAttention(const AttentionView& view) {
  if (!positions_.contains(view.sequence)) return;
  if (view.stream == 0) pending_[view.sequence] = {{view.q, view.k, view.v, {}, {}}};
  if (view.stream + 1 == num_streams()) {
    Measure(view.layer, view.sequence);
    pending_.erase(view.sequence);
  }
}

void ValidationObserver::Measure(const LayerSpec& layer, int64_t sequence) {
  const AttentionSpec& spec = layer.attention;
  const std::vector<Streams>& streams = pending_.at(sequence);
  OSCAR_CHECK_EQ(streams.size(), num_streams());
  const Streams& reference = streams[0];
  const at::ScalarType dtype = options_.measure_dtype;
  const at::Tensor k = reference.k.to(dtype), v = reference.v.to(dtype);
  RowComparison comparison(spec, k, v, dtype);
  const RowComparison::Prepared exact = comparison.Prepare({k, v, {}, {}});

  std::vector<RowComparison::Prepared> local, end_to_end;
  for (const LocalGroup& group : groups_) {
    const LayerCache& cache = caches_[group.arms[0]];
    const at::Tensor k_stored = cache.k(k), v_stored = cache.v(v);
    local.push_back(comparison.Prepare({k_stored, v_stored, {}, {}}));
    for (const size_t arm : group.arms) local_[arm].AddCache(k, k_stored, v, v_stored);
  }
  local_[0].AddCache(k, k, v, v);
  for (size_t arm = 0; arm < end_to_end_.size(); ++arm) {
    const Streams& own = streams[arm];
    const at::Tensor& k_stored = arm == 0 ? own.k : own.k_stored;
    const at::Tensor& v_stored = arm == 0 ? own.v : own.v_stored;
    end_to_end.push_back(comparison.Prepare({k_stored, v_stored, own.k, own.v}));
    end_to_end_[arm].AddCache(k, k_stored, v, v_stored);
  }

  const std::vector<int64_t>& positions = positions_.at(sequence);
  const auto num_rows = static_cast<int64_t>(positions.size());
  const int64_t tokens = k.size(0);
  const at::Tensor all_rows =
      at::tensor(positions, at::TensorOptions().dtype(at::kLong)).to(k.device());
  const at::Tensor headline = all_rows.ge(FirstHeadlineRow(tokens)).to(dtype);
  const int64_t step = RowsPerSlice(spec, tokens, static_cast<int64_t>(c10::elementSize(dtype)),
                                    ScoreBytes(k.device()));
  for (int64_t begin = 0; begin < num_rows; begin += step) {
    const int64_t end = std::min(num_rows, begin + step);
    const at::Tensor rows = all_rows.slice(0, begin, end);
    const at::Tensor weight = headline.slice(0, begin, end);
    comparison.SetRows({rows, reference.q.index_select(0, rows)});
    const CacheWindows none[] = {{}};
    const RowErrors zero = comparison.Compare(exact, {}, none)[0];
    local_[0].AddRows(zero, comparison, weight);
    for (size_t i = 0; i < groups_.size(); ++i) {
      const std::vector<RowErrors> errors = comparison.Compare(local[i], {}, groups_[i].windows);
      for (size_t j = 0; j < errors.size(); ++j)
        local_[groups_[i].arms[j]].AddRows(errors[j], comparison, weight);
    }
    for (size_t arm = 0; arm < end_to_end_.size(); ++arm) {
      if (arm == 0) {
        end_to_end_[0].AddRows(zero, comparison, weight);
        continue;
      }
      const CacheWindows windows[] = {WindowsOf(arms_[arm])};
      end_to_end_[arm].AddRows(
          comparison.Compare(end_to_end[arm], streams[arm].q.index_select(0, rows), windows)[0],
          comparison, weight);
    }
  }
}

void ValidationObserver::OnLayerEnd(const LayerSpec&) {
  OSCAR_CHECK(pending_.empty());
  for (ArmErrors& errors : local_) errors.EndLayer();
  for (ArmErrors& errors : end_to_end_) errors.EndLayer();
}

}  // namespace oscar
