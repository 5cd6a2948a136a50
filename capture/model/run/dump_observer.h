// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An observer of the layer loop that writes a dump: queries, keys and values in the compute dtype,
// and, if requested, attention scores. Latent attention must be shown with expanded heads. If
// rotations are to be fitted to the dump, LoopOptions::shared_queries and in_latent_space are
// needed too, so that hidden states equal those of a calibration bit for bit. Every value is read
// on the host, so the device waits for the disk.
#pragma once

#include "capture/checkpoint/dtype.h"
#include "capture/dump/dump_writer.h"
#include "capture/model/run/attention_source.h"

namespace oscar {

// Returns the dump's description of a layer, without the layers that read its cache. `dtype` of the
// values: BF16, F16 or F32.
DumpLayer DumpLayerOf(const LayerSpec& layer, DType dtype);
// The same, with the model's layers that read this layer's cache.
DumpLayer DumpLayerOf(const ModelSpec& spec, const LayerSpec& layer, DType dtype);
DType DumpDType(at::ScalarType dtype);

class DumpObserver : public LayerObserver {
 public:
  // `scores`: `sink` as a DumpWriter if it takes score rows, otherwise null.
  DumpObserver(DumpSink& sink, DumpWriter* scores, at::ScalarType dtype);

  void OnLayerBegin(const LayerSpec& layer) override;
  // Throws NumericalError naming layer, tensor, token and head if there is a NaN or infinity.
  void OnAttention(const AttentionView& view) override;
  void OnSharedAttention(const AttentionView& view) override;
  void OnLayerEnd(const LayerSpec& layer) override;

 private:
  void WriteTensor(const DumpLayer& layer, const AttentionView& view, DumpTensor tensor);
  void WriteScores(const AttentionView& view);

  DumpSink& sink_;
  DumpWriter* scores_;
  DType dtype_;
};

// Dumps the final logits of all tokens, float32. `model` must have run to its end with
// need_final_hidden.
void DumpLogits(const ModelSource& model, DumpWriter& writer);

}  // namespace oscar
