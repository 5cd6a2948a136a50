// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The calibration text of methods that are fitted to rows. It runs before the evaluated text, so
// its queries, keys and values of a layer exist when the layer's caches are made. The next
// observer's counts of sequences and tokens leave it out.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/model/run/layer_loop.h"
#include "export/simulate/cache_method.h"

namespace oscar {

class CalibrationRowsObserver : public LayerObserver {
 public:
  // The first sequences of the run are calibration text, with `lengths` tokens. Their rows go to
  // `context`, and everything else to `next`. Keeps references.
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
  CalibrationRows rows_;  // rows of the current layer, until it has all
};

}  // namespace oscar
