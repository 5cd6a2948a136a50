// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See plan.h.
#include "calib/plan.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "calib/attention_error.h"
#include "calib/process_layer.h"
#include "capture/model/device.h"
#include "capture/model/memory_plan.h"

namespace oscar {
namespace {

// Multiply-adds of everything that is done to the tokens of one layer: by the model's arithmetic,
// and by the statistics in float64.
struct Work {
  double model = 0, statistics = 0;
};

// `hidden_size` 0: no model runs, its attention has been read.
Work LayerWork(const LayerSpec& layer, int64_t hidden_size, const std::vector<int64_t>& lengths) {
  const AttentionSpec& a = layer.attention;
  const auto q = static_cast<double>(a.num_q_heads), kv = static_cast<double>(a.num_kv_heads);
  const auto d = static_cast<double>(a.head_dim), dv = static_cast<double>(a.v_head_dim);
  Work work;
  for (int64_t length : lengths) {
    const auto t = static_cast<double>(length);
    const double seen = a.window ? std::min(t, static_cast<double>(*a.window))
                                 : t;  // the whole square is computed, masked
    work.model +=
        t * static_cast<double>(hidden_size) *
        (q * d + kv * (d + dv) + q * dv + 3.0 * static_cast<double>(layer.mlp.intermediate_size));
    if (hidden_size > 0) work.model += t * seen * q * (d + dv);
    work.statistics += t * (q * (d * d + dv * dv) + kv * (d * d + 3 * dv * dv + d * d));
  }
  return work;
}

// Multiply-adds per second of a square product, from a fraction of a second of it.
double MeasuredRate(at::Device device, at::ScalarType dtype) {
  const at::Tensor a = at::ones({1024, 1024}, at::TensorOptions().device(device).dtype(dtype));
  at::Tensor product = a.matmul(a);
  (void)product[0][0].item<double>();
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int64_t products = 0;
  while (seconds < 0.1) {
    product = a.matmul(a);
    (void)product[0][0].item<double>();
    ++products;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return static_cast<double>(products) * 1024.0 * 1024.0 * 1024.0 / seconds;
}

// Bytes that a layer's calibration adds to the loop.
struct FitBytes {
  uint64_t kept =
      0;  // keys and values of all tokens, from the layer's attention to the end of its fit
  uint64_t temporaries = 0;  // of the fit, after the layer's attention
};

FitBytes FitMemory(const std::vector<LayerSpec>& layers,
                   const std::vector<int64_t>& sequence_lengths, at::ScalarType dtype,
                   const CalibrationOptions& options) {
  const auto tokens = static_cast<uint64_t>(
      std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0}));
  const auto element = static_cast<uint64_t>(at::elementSize(dtype));
  const HeldOutSplit split = SplitHeldOut(sequence_lengths, options.held_out);
  FitBytes peak;
  for (const LayerSpec& layer : layers) {
    const AttentionSpec& a = layer.attention;
    const auto kv = static_cast<uint64_t>(a.num_kv_heads),
               dim = static_cast<uint64_t>(std::max(a.head_dim, a.v_head_dim));
    const uint64_t kept = tokens * kv * static_cast<uint64_t>(a.head_dim + a.v_head_dim) * element;
    // Static thresholds: |x R| of all tokens in float32, the copy kthvalue works on, and its index
    // buffer.
    const uint64_t thresholds = tokens * kv * dim * (4 + 4 + 8);
    // Clip search: rotated rows, sorted magnitudes, indices and float64 energies of the held-out
    // rows.
    const auto held_out = static_cast<uint64_t>(split.held_out_tokens);
    const uint64_t search = held_out * kv * dim * (4 * 4 + 8 + 3 * 8);
    uint64_t errors = 0;
    for (size_t i = 0; i < sequence_lengths.size(); ++i) {
      const int64_t rows = std::min(sequence_lengths[i] - split.fit_rows[i], options.error_rows);
      if (rows > 0)
        errors = std::max(errors, AttentionErrorMemory(layer, sequence_lengths[i], rows, kNumArms));
    }
    peak.kept = std::max(peak.kept, kept);
    peak.temporaries = std::max({peak.temporaries, thresholds, search, errors});
  }
  return peak;
}

// The loop of a dump is one sequence at a time, as stored and in the compute dtype.
MemoryPlan DumpMemory(const DumpSource& dump, at::ScalarType dtype, at::DeviceType device) {
  const std::vector<int64_t>& lengths = dump.sequence_lengths();
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  MemoryPlan plan;
  for (size_t i = 0; i < dump.layers().size(); ++i) {
    const AttentionSpec& a = dump.layers()[i].attention;
    const auto values = static_cast<uint64_t>(longest * (a.num_q_heads + a.num_kv_heads) *
                                              (a.head_dim + a.v_head_dim));
    plan.weights_read += dump.BytesRead(i);
    plan.attention = std::max(plan.attention, values * at::elementSize(dtype));
    plan.staging = std::max(plan.staging, values * 4);
  }
  plan.program = ResidentBytes();
  plan.device_peak = device == at::kCPU ? 0 : plan.attention;
  plan.host_peak = plan.staging + plan.program + (device == at::kCPU ? plan.attention : 0);
  return plan;
}

MemoryPlan SourceMemory(const CalibrationInput& input) {
  const std::vector<int64_t>& lengths = input.source->sequence_lengths();
  if (const ModelSource* model = input.model()) {
    return PlanMemory(model->loop().spec(), model->loop().checkpoint(), input.num_tokens(),
                      *std::max_element(lengths.begin(), lengths.end()), input.dtype,
                      input.device.type(), model->loop().options());
  }
  const auto* dump = dynamic_cast<const DumpSource*>(input.source.get());
  return dump == nullptr ? MemoryPlan{} : DumpMemory(*dump, input.dtype, input.device.type());
}

}  // namespace

CalibrationPlan PlanCalibration(const CalibrationInput& input) {
  const std::vector<int64_t>& lengths = input.source->sequence_lengths();
  const std::vector<LayerSpec>& layers = input.source->layers();
  const MemoryPlan memory = SourceMemory(input);
  const FitBytes fit = FitMemory(layers, lengths, input.dtype, input.options);

  CalibrationPlan plan;
  plan.bytes_read = memory.weights_read;
  const uint64_t fit_phase = memory.layer_weights + memory.hidden + fit.kept + fit.temporaries;
  if (input.device.is_cpu()) {
    // The fit of a layer follows its attention: its temporaries and those of the loop are not held
    // together.
    const uint64_t loop_phase = memory.host_peak - memory.program + fit.kept;
    plan.peak_host = memory.program + std::max(loop_phase, fit_phase);
  } else {
    plan.peak_device = std::max(memory.device_peak + fit.kept, fit_phase);
    plan.peak_host = memory.host_peak + memory.hidden;
  }

  uint64_t layer_files = 0, rotations = 0;
  Work work;
  const int64_t hidden_size =
      input.model() == nullptr ? 0 : input.model()->loop().spec().hidden_size;
  for (const LayerSpec& layer : layers) {
    const AttentionSpec& a = layer.attention;
    const auto kv = static_cast<uint64_t>(a.num_kv_heads);
    const auto dd = static_cast<uint64_t>(a.head_dim * a.head_dim),
               vv = static_cast<uint64_t>(a.v_head_dim * a.v_head_dim);
    layer_files += 8 * kv * (2 * dd + 3 * vv);
    rotations += (kv + 1) * (dd + vv);
    const Work layer_work = LayerWork(layer, hidden_size, lengths);
    work.model += layer_work.model;
    work.statistics += layer_work.statistics;
  }
  plan.disk_artifact = layer_files + 4 * rotations;
  plan.disk_while_running = layer_files + 8 * rotations + 2 * memory.hidden + plan.disk_artifact;
  plan.seconds = work.model / MeasuredRate(input.device, input.dtype) +
                 work.statistics / MeasuredRate(input.device, at::kDouble);
  return plan;
}

}  // namespace oscar
