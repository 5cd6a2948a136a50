// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/plan.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "calib/observe/statistics_observer.h"
#include "calib/run/device_rates.h"
#include "calib/run/layer_parts.h"
#include "calib/run/process_layer.h"
#include "calib/search/attention_error.h"
#include "calib/search/clip_search.h"
#include "calib/search/search_cost.h"
#include "capture/model/run/device.h"
#include "capture/model/run/memory_plan.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Multiply-adds for the tokens of one layer: in the model's arithmetic, and in float64 statistics.
struct Work {
  double model = 0, statistics = 0;
};

// Returns the multiply-adds per token of the layer itself, without attention scores.
double TokenWork(const LayerSpec& layer, double hidden_size) {
  double values = 3.0 * static_cast<double>(layer.mlp.intermediate_size);  // weights / hidden_size
  if (const auto& experts = layer.experts) {
    values += static_cast<double>(experts->num_experts) +
              3.0 * static_cast<double>(experts->router.top_k * experts->intermediate_size +
                                        experts->shared_size);
  }
  if (const auto& net = layer.delta_net) {
    constexpr double kPairs = 64;  // tokens per chunk of the delta rule
    values += static_cast<double>(net->conv_width() + 2 * net->value_width());
    return hidden_size * values +
           static_cast<double>(net->num_v_heads * (net->k_head_dim + net->v_head_dim)) *
               (3 * kPairs + 2 * static_cast<double>(net->v_head_dim));
  }
  const AttentionSpec& a = layer.attention;
  const auto q = static_cast<double>(a.num_q_heads), kv = static_cast<double>(a.num_kv_heads);
  const auto d = static_cast<double>(a.head_dim), dv = static_cast<double>(a.v_head_dim);
  if (const auto& latent = a.latent) {
    const auto rank = static_cast<double>(latent->rank);
    const auto q_rank = static_cast<double>(latent->q_a.out_features);
    values += rank + static_cast<double>(latent->rope_dim) + q * dv + (q_rank > 0 ? q_rank : q * d);
    return hidden_size * values + q_rank * q * d +
           rank * q * (static_cast<double>(latent->nope_dim) + dv);
  }
  return hidden_size * (values + q * d + kv * (d + dv) + q * dv);
}

// `hidden_size` 0: the attention was recorded, so no model runs.
Work LayerWork(const LayerSpec& layer, int64_t hidden_size, const std::vector<int64_t>& lengths) {
  const AttentionSpec& a = layer.attention;
  const auto q = static_cast<double>(a.num_q_heads), kv = static_cast<double>(a.num_kv_heads);
  const auto d = static_cast<double>(a.head_dim), dv = static_cast<double>(a.v_head_dim);
  Work work;
  for (int64_t length : lengths) {
    const auto t = static_cast<double>(length);
    const double seen = a.window ? std::min(t, static_cast<double>(*a.window))
                                 : t;  // the whole square is computed and masked
    if (hidden_size > 0) {
      work.model += t * TokenWork(layer, static_cast<double>(hidden_size));
      work.model += t * seen * q * (d + dv);
    }
    if (layer.has_cache())
      work.statistics += t * (q * (d * d + dv * dv) + kv * (d * d + 3 * dv * dv + d * d));
  }
  return work;
}

// Returns the cost of a layer's fit without its automatic choice. The fit searches clip ratios on
// held-out rows, measures the errors of every arm, and finds thresholds over all tokens.
AutoCost CostOfFit(const LayerSpec& layer, const std::vector<int64_t>& lengths,
                   const HeldOutSplit& split, const CalibrationOptions& options) {
  constexpr double kSides = 2, kRowPasses = 14, kScorePasses = 6, kSortPasses = 30;
  const AttentionSpec& a = layer.attention;
  const auto q = static_cast<double>(a.num_q_heads), kv = static_cast<double>(a.num_kv_heads);
  const auto d = static_cast<double>(a.head_dim), dv = static_cast<double>(a.v_head_dim);
  const double dims = d + dv, squares = d * d + dv * dv;
  const ChoiceArms more = ChoiceArmsOf(options.automatic);
  const auto arms = static_cast<double>(kNumArms + more.points),
             keys = static_cast<double>(kNumArms + more.keys);
  AutoCost cost;
  double tokens = 0, held_out = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto length = static_cast<double>(lengths[i]);
    tokens += length;
    const int64_t rows = split.NumKeptRows(i, lengths[i], options.error_rows);
    if (rows < 1) continue;
    held_out += static_cast<double>(lengths[i] - split.fit_rows[i]);
    const double scores = q * static_cast<double>(rows) * length;
    cost.multiply_adds +=
        (keys + 1) * scores * d + (arms + 1) * scores * dv + keys * kv * length * squares;
    cost.elements += (arms + 1) * kScorePasses * scores + keys * kRowPasses * kv * length * dims;
  }
  cost.multiply_adds += kSides * tokens * kv * squares;
  cost.elements += kSides * kSortPasses * tokens * kv * dims;
  if (options.clip.mode == ClipMode::kSearch) {
    const auto candidates = static_cast<double>(options.clip.candidates.size());
    cost.multiply_adds += kSides * (candidates + 1) * held_out * kv * squares;
    cost.elements += kSides * (kSortPasses + candidates * kRowPasses) * held_out * kv * dims;
  }
  return cost;
}

// Memory in bytes that calibrating a layer adds to the loop.
struct FitBytes {
  uint64_t kept = 0;         // keys and values of all tokens, from attention to the end of the fit
  uint64_t temporaries = 0;  // during the fit, after attention
  uint64_t host = 0;         // host memory, also with a GPU
  uint64_t observing = 0;    // float64 copies of one chunk of queries, during attention
};

FitBytes FitMemory(const CalibrationInput& input) {
  const std::vector<LayerSpec>& layers = input.source->layers();
  const std::vector<int64_t>& sequence_lengths = input.job_lengths();
  const at::ScalarType dtype = input.dtype;
  const at::DeviceType device = input.device.type();
  const CalibrationOptions& options = input.options;
  const auto tokens = static_cast<uint64_t>(
      std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0}));
  const auto element = static_cast<uint64_t>(at::elementSize(dtype));
  const HeldOutSplit split = input.Split();
  const int64_t longest = *std::ranges::max_element(sequence_lengths);
  FitBytes peak;
  for (const LayerSpec& layer : layers) {
    const AttentionSpec& a = layer.attention;
    const auto kv = static_cast<uint64_t>(a.num_kv_heads),
               dim = static_cast<uint64_t>(std::max(a.head_dim, a.v_head_dim));
    const uint64_t kept = tokens * kv * static_cast<uint64_t>(a.head_dim + a.v_head_dim) * element;
    peak.kept = std::max(peak.kept, kept);
    peak.observing = std::max(peak.observing, ObservingMemory(layer, longest));
    if (input.ranks.apart) continue;  // a shard fits nothing
    // Static thresholds need |x R| of all tokens in float32. On a CPU, kthvalue adds a copy and an
    // index buffer. On a GPU, topk adds up to half of the values with their indices, and the
    // longest document is added while it is converted.
    const uint64_t thresholds = tokens * kv * dim * (device == at::kCPU ? 4 + 4 + 8 : 4 + 6 + 8);
    // The clip search needs rotated rows, sorted magnitudes and indices of the held-out rows, and
    // float32 and float64 temporaries of a few candidates.
    const auto held_out = static_cast<uint64_t>(split.held_out_tokens);
    const uint64_t values = held_out * kv * dim;
    const auto candidates =
        std::min(static_cast<uint64_t>(CandidatesAtOnce(static_cast<int64_t>(values), device)),
                 static_cast<uint64_t>(options.clip.candidates.size()));
    const uint64_t search = values * (4 + 4 + 8) + candidates * values * (2 * 4 + 3 * 8);
    uint64_t errors = 0;
    for (size_t i = 0; i < sequence_lengths.size(); ++i) {
      const int64_t rows = split.NumKeptRows(i, sequence_lengths[i], options.error_rows);
      if (rows > 0)
        errors = std::max(errors, AttentionErrorMemory(layer, sequence_lengths[i], rows, kNumArms,
                                                       ChoiceArmsOf(options.automatic), device));
    }
    const AutoCost choice =
        CostOfChoice(layer, sequence_lengths, split, options.automatic, options.error_rows, device);
    peak.host = std::max(peak.host, choice.host_bytes);
    peak.temporaries = std::max({peak.temporaries, thresholds, search, errors, choice.bytes});
  }
  return peak;
}

// Returns the memory of a dump's loop: one sequence at a time, as stored and in the compute dtype.
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
  if (const ModelSource* model = input.running_model()) {
    return PlanMemory(model->loop().spec(), model->loop().checkpoint(), model->num_tokens(),
                      *std::max_element(lengths.begin(), lengths.end()), input.dtype,
                      input.device.type(), model->loop().options());
  }
  if (const auto* dump = dynamic_cast<const DumpSource*>(input.source.get()))
    return DumpMemory(*dump, input.dtype, input.device.type());
  MemoryPlan plan;  // for shards, which have already run the model
  for (size_t i = 0; i < input.source->layers().size(); ++i)
    plan.weights_read += input.source->BytesRead(i);
  plan.host_peak = plan.program = ResidentBytes();
  return plan;
}

// Returns the bytes of layers that are kept for the queries of other layers.
uint64_t HeldBytes(const CalibrationInput& input, const FitBytes& fit) {
  return fit.kept * (input.source->layers().size() - input.source->first_shared_layer());
}

bool HasExperts(const CalibrationInput& input) {
  const ModelSource* model = input.model();
  if (model == nullptr) return false;
  const std::vector<const LayerSpec*> layers = AllLayers(model->loop().spec());
  return std::ranges::any_of(layers, [](const LayerSpec* layer) { return !!layer->experts; });
}

}  // namespace

double DocumentWork(const ModelSpec& spec, int64_t tokens) {
  constexpr double kFloat64 = 4;  // cost of float64 relative to the model's arithmetic
  double sum = 0;
  for (const LayerSpec* layer : AllLayers(spec)) {
    const Work work = LayerWork(*layer, spec.hidden_size, {tokens});
    sum += work.model + kFloat64 * work.statistics;
  }
  return sum;
}

CalibrationInput FitIntoMemory(
    uint64_t limit,
    const std::function<CalibrationInput(const LoopOptions&, const RunOptions&)>& make) {
  LoopOptions loop = CalibrationLoopOptions();
  RunOptions run;
  uint64_t needed = 0;
  const auto fits = [&](const CalibrationInput& input) {
    needed = PlanDeviceMemory(input);
    return needed <= limit;
  };
  CalibrationInput input;
  for (; run.fits_beside >= 0; --run.fits_beside) {
    input = make(loop, run);
    if (fits(input)) return input;
  }
  run.fits_beside = 0;
  if (HasExperts(input)) {
    for (int smaller = 0; smaller < 5; ++smaller) {  // down to about one expert at a time
      loop.expert_bytes /= 4;
      input = make(loop, run);
      if (fits(input)) return input;
    }
  }
  for (const int64_t divisor : {2, 4, 8}) {
    loop.token_chunk = CalibrationLoopOptions().token_chunk / divisor;
    loop.query_chunk = CalibrationLoopOptions().query_chunk / divisor;
    input = make(loop, run);
    if (fits(input)) return input;
  }
  loop.prefetch = false;
  input = make(loop, run);
  if (fits(input)) return input;
  throw ResourceError(
      fmt::format("this calibration needs at least {:.2f} GB of GPU memory, but only {:.2f} GB may "
                  "be used (the given limit, or the free memory)",
                  static_cast<double>(needed) / 1e9, static_cast<double>(limit) / 1e9),
      Remedy::kLessAtOnce);
}

std::string HostMemoryProblem(const CalibrationPlan& plan) {
  if (plan.peak_device > 0) return "";
  const uint64_t held = ResidentBytes(), available = AvailableHostBytes(/*swap=*/true);
  const uint64_t more = plan.peak_host - std::min(plan.peak_host, held);
  if (more <= available) return "";
  return fmt::format(
      "this calibration needs {:.2f} GB of memory, {:.2f} GB more than it already uses, but only "
      "{:.2f} GB may be used (the free memory, or the limit of the control group)",
      static_cast<double>(plan.peak_host) / 1e9, static_cast<double>(more) / 1e9,
      static_cast<double>(available) / 1e9);
}

uint64_t PlanDeviceMemory(const CalibrationInput& input) {
  if (input.device.is_cpu()) return 0;
  const std::vector<LayerSpec>& layers = input.source->layers();
  const MemoryPlan memory = SourceMemory(input);
  const FitBytes fit = FitMemory(input);
  // With several ranks, a layer is also held in the buffers that send it.
  const uint64_t travelling = input.ranks.apart || input.ranks.shares.size() == 1 ? 0 : fit.kept;
  const uint64_t observed =
      memory.device_peak + fit.kept + travelling + HeldBytes(input, fit) +
      (fit.observing > memory.temporaries ? fit.observing - memory.temporaries : uint64_t{0});
  if (input.run.fits_beside > 0) {
    const uint64_t beside =
        std::min<uint64_t>(static_cast<uint64_t>(input.run.fits_beside), layers.size());
    return observed + beside * (fit.kept + fit.temporaries + kCublasWorkspaceBytes);
  }
  return std::max(observed, memory.layer_weights + memory.hidden + memory.workspaces + fit.kept +
                                HeldBytes(input, fit) + fit.temporaries);
}

CalibrationPlan PlanCalibration(const CalibrationInput& input) {
  const std::vector<int64_t>& lengths = input.job_lengths();
  const std::vector<LayerSpec>& layers = input.source->layers();
  const MemoryPlan memory = SourceMemory(input);
  const FitBytes fit = FitMemory(input);
  const ModelSource* const model = input.running_model();
  const bool fits_layers = !input.ranks.apart;

  CalibrationPlan plan;
  plan.bytes_read = memory.weights_read;
  if (input.device.is_cpu()) {
    // A layer is fitted after its attention, so the temporaries of the fit and the loop are not
    // held at the same time.
    const uint64_t fit_phase =
        memory.layer_weights + memory.hidden + fit.kept + fit.temporaries + fit.host;
    const uint64_t loop_phase = memory.host_peak - memory.program + fit.kept;
    plan.peak_host = memory.program + HeldBytes(input, fit) + std::max(loop_phase, fit_phase);
  } else {
    plan.peak_device = PlanDeviceMemory(input);
    plan.peak_host = memory.host_peak + memory.hidden + fit.host;
  }

  uint64_t layer_files = 0, rotations = 0;
  Work work;
  AutoCost choice, fits;
  const HeldOutSplit split = input.Split();
  // A merge of shards does not run the model: the shards have already observed everything.
  const bool observes = model == input.model();
  const int64_t hidden_size = model == nullptr ? 0 : model->loop().spec().hidden_size;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = layers[i];
    if (observes) {
      const Work layer_work = LayerWork(layer, hidden_size, lengths);
      work.model += layer_work.model;
      work.statistics += layer_work.statistics;
    }
    if (!fits_layers) {
      layer_files += PartBytes(input, split, i, input.ranks.own());
      continue;
    }
    const AttentionSpec& a = layer.attention;
    const auto kv = static_cast<uint64_t>(a.num_kv_heads);
    const auto dd = static_cast<uint64_t>(a.head_dim * a.head_dim),
               vv = static_cast<uint64_t>(a.v_head_dim * a.v_head_dim);
    layer_files += 8 * kv * (2 * dd + 3 * vv);
    rotations += (kv + 1) * (dd + vv);
    const AutoCost of_layer = CostOfChoice(layer, lengths, split, input.options.automatic,
                                           input.options.error_rows, input.device.type());
    choice.multiply_adds += of_layer.multiply_adds;
    choice.elements += of_layer.elements;
    choice.eigen_flops += of_layer.eigen_flops;
    const AutoCost of_fit = CostOfFit(layer, lengths, split, input.options);
    fits.multiply_adds += of_fit.multiply_adds;
    fits.elements += of_fit.elements;
    // Keys and values, and the matrix of the queries.
    if (of_layer.bytes > 0) rotations += kv * (2 * dd + vv);
  }
  if (model != nullptr) {
    for (const LayerSpec& layer : model->loop().spec().uncached)
      work.model += LayerWork(layer, hidden_size, lengths).model;
  }
  plan.disk_artifact = layer_files + 4 * rotations;
  const uint64_t hidden =
      memory.hidden / static_cast<uint64_t>(std::max<int64_t>(1, model ? model->num_tokens() : 1));
  // A shard has the same files as its job.
  plan.disk_while_running = (fits_layers ? layer_files + 8 * rotations : 0) + plan.disk_artifact +
                            2 * hidden * static_cast<uint64_t>(input.job_tokens());
  const DeviceRates rates = MeasureRates(input.device, input.dtype);
  const auto seconds_of = [&](const AutoCost& cost) {
    return cost.multiply_adds / rates.scores + cost.elements / rates.elements;
  };
  plan.model_seconds = work.model / rates.model;
  plan.statistics_seconds = work.statistics / rates.statistics;
  plan.fit_seconds = seconds_of(fits);
  const double eigen = choice.eigen_flops > 0 ? choice.eigen_flops / MeasureHostRate() : 0;
  const double beside = plan.model_seconds + plan.statistics_seconds + plan.fit_seconds;
  // On a GPU, the host computes eigenvectors meanwhile, and searches for several layers fill each
  // other's gaps. The factor was measured on an H100 with three searches at a time.
  constexpr double kSeveralAtATime = 0.85;
  plan.auto_seconds = input.device.is_cpu()
                          ? seconds_of(choice) + eigen
                          : std::max(kSeveralAtATime * seconds_of(choice), eigen - beside);
  plan.seconds = beside + plan.auto_seconds;
  return plan;
}

}  // namespace oscar
