// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Collects rows of calibration text for methods that are fitted to them. The calibration text runs
// before the evaluated text, so a layer's queries, keys and values are known when its caches are
// made.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/model/run/layer_loop.h"
#include "export/simulate/cache_method.h"

namespace oscar {

class CalibrationRowsObserver : public LayerObserver {
 public:
  // The run's first sequences, of `lengths` tokens, are calibration text. Their rows go to
  // `context`. All other calls go to `next`, whose sequence and token indices start after the
  // calibration text. Keeps references.
  CalibrationRowsObserver(const std::vector<int64_t>& lengths, MethodContext& context,
                          LayerObserver& next);

  void OnLayerBegin(const LayerSpec& layer) override { next_.OnLayerBegin(layer); }
  bool Attend(const AttentionView& view) override;
  void OnAttention(const AttentionView& view) override;
  void OnLayerEnd(const LayerSpec& layer) override;

 private:
  AttentionView Behind(const AttentionView& view) const;

  int64_t num_sequences_ = 0, num_tokens_ = 0;
  MethodContext& context_;
  LayerObserver& next_;
  CalibrationRows rows_;  // rows of the current layer until all are collected
};

}  // namespace oscar
