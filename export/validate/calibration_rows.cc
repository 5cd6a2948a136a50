// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/calibration_rows.h"

#include <ATen/ATen.h>

#include <numeric>
#include <utility>

#include "linalg/base/check.h"

namespace oscar {

CalibrationRowsObserver::CalibrationRowsObserver(const std::vector<int64_t>& lengths,
                                                 MethodContext& context, LayerObserver& next)
    : num_sequences_(static_cast<int64_t>(lengths.size())),
      num_tokens_(std::accumulate(lengths.begin(), lengths.end(), int64_t{0})),
      context_(context),
      next_(next) {}

AttentionView CalibrationRowsObserver::Behind(const AttentionView& view) const {
  return {.layer = view.layer,
          .layer_index = view.layer_index,
          .sequence = view.sequence - num_sequences_,
          .first_token = view.first_token - num_tokens_,
          .q = view.q,
          .k = view.k,
          .v = view.v,
          .attn_out = view.attn_out,
          .stream = view.stream,
          .sinks = view.sinks,
          .c_kv = view.c_kv,
          .k_pe = view.k_pe,
          .q_pe = view.q_pe,
          .kv_b = view.kv_b};
}

bool CalibrationRowsObserver::Attend(const AttentionView& view) {
  return view.sequence >= num_sequences_ && next_.Attend(Behind(view));
}

void CalibrationRowsObserver::OnAttention(const AttentionView& view) {
  if (view.sequence >= num_sequences_) {
    next_.OnAttention(Behind(view));
    return;
  }
  OSCAR_CHECK_EQ(view.stream, 0U);
  rows_.q.push_back(view.q);
  rows_.k.push_back(view.k);
  rows_.v.push_back(view.v);
  if (view.sequence + 1 < num_sequences_) return;
  context_.SetRows(std::exchange(rows_, {}));
}

void CalibrationRowsObserver::OnLayerEnd(const LayerSpec& layer) {
  next_.OnLayerEnd(layer);
  context_.SetRows({});
}

}  // namespace oscar
