// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements PlanSelfGeneration of self_generation.h: computes how many continuations fit next to
// the weights, or the cost if the weights do not fit. A step reads every weight once for any number
// of sequences, so a few large batches are cheaper than many small ones.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "calib/run/self_generation.h"
#include "capture/model/generate/decode_loop.h"
#include "capture/model/run/device.h"
#include "capture/model/run/memory_plan.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kMostResident = 64, kMostStreamed = 256;  // most sequences at once
constexpr double kUsable = 0.9;  // share of free memory; the rest is allocator overhead

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

double Gigabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// Multiply-adds per second in a product of `rows` rows, like those in a step.
double StepRate(at::Device device, at::ScalarType dtype, int64_t rows) {
  constexpr int64_t kSize = 2048;
  const auto options = at::TensorOptions().device(device).dtype(dtype);
  const at::Tensor x = at::ones({rows, kSize}, options), w = at::ones({kSize, kSize}, options);
  const auto step = [&] { (void)x.matmul(w)[0][0].item<double>(); };
  step();
  double fastest = 1, all = 0;  // seconds
  while (all < 0.05) {
    const auto start = std::chrono::steady_clock::now();
    step();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fastest = std::min(fastest, seconds);
    all += seconds;
  }
  return static_cast<double>(rows * kSize * kSize) / fastest;
}

class Planner {
 public:
  explicit Planner(const SelfGeneration& model) : model_(model) {
    for (const Document& prompt : model.prompts)
      longest_prompt_ = std::max(longest_prompt_, std::ssize(prompt.ids));
    const int64_t tokens = model.options.tokens;
    continuation_ = std::min(model.options.longest, tokens);
    continuations_ = std::min(Ceil(tokens, continuation_), std::ssize(model.prompts));
  }

  // Plans for a batch size; returns nothing if that needs more than `limit`.
  std::optional<SelfGenerationPlan> Try(bool resident, int64_t batch, const LoopOptions& loop,
                                        uint64_t limit) {
    const int64_t capacity = std::min(longest_prompt_ + continuation_, model_.max_sequence),
                  rows = batch * longest_prompt_;
    const MemoryPlan run = PlanMemory(model_.spec, model_.checkpoint, rows, longest_prompt_,
                                      model_.dtype, model_.device.type(), loop);
    SelfGenerationPlan plan;
    plan.resident = resident;
    plan.batch = batch;
    plan.loop = loop;
    plan.loop.read = model_.read;
    plan.weight_bytes = DecodeLoop::WeightBytes(model_.spec, model_.dtype);
    plan.cache_bytes =
        static_cast<uint64_t>(batch) * DecodeLoop::CacheBytes(model_.spec, capacity, model_.dtype);
    const uint64_t element = c10::elementSize(model_.dtype);
    const uint64_t head = static_cast<uint64_t>(model_.spec.vocab_size * model_.spec.hidden_size);
    // Logits in the compute dtype and, if tokens are sampled, sorted and summed in float64.
    const uint64_t logits = static_cast<uint64_t>(batch * model_.spec.vocab_size) *
                            (2 * element + (model_.options.sampling.temperature > 0 ? 48 : 0));
    plan.memory_bytes = (resident ? plan.weight_bytes : run.layer_weights + head * element) +
                        plan.cache_bytes + LargestCacheOfLayer(batch, capacity) + run.hidden +
                        run.kept + QkvBytes(rows) + run.attention + run.temporaries +
                        run.workspaces + logits;
    plan.steps = Ceil(continuations_, batch) * continuation_;
    plan.bytes_read = run.weights_read * static_cast<uint64_t>(resident ? 1 : plan.steps);
    needed_ = plan.memory_bytes;
    if (plan.memory_bytes > limit) return std::nullopt;
    return plan;
  }

  int64_t continuations() const { return continuations_; }
  uint64_t needed() const { return needed_; }  // for the last batch size tried

 private:
  // Caches of a layer are copied for the sequences that continue.
  uint64_t LargestCacheOfLayer(int64_t batch, int64_t capacity) const {
    int64_t largest = 0;
    for (const LayerSpec* layer : AllLayers(model_.spec)) {
      largest = std::max(largest,
                         DecodeCache::Bytes(*layer, capacity,
                                            static_cast<int64_t>(c10::elementSize(model_.dtype))));
    }
    return static_cast<uint64_t>(batch * largest);
  }

  // Queries, keys, values and outputs for all prompts in one layer.
  uint64_t QkvBytes(int64_t rows) const {
    int64_t widest = 0;
    for (const LayerSpec* layer : AllLayers(model_.spec)) {
      const AttentionSpec& a = layer->attention;
      widest = std::max(widest, (a.num_q_heads + a.num_kv_heads) * (a.head_dim + a.v_head_dim));
    }
    return static_cast<uint64_t>(rows * widest) * c10::elementSize(model_.dtype);
  }

  const SelfGeneration& model_;
  int64_t longest_prompt_ = 0, continuation_ = 0, continuations_ = 0;
  uint64_t needed_ = 0;
};

void CheckPrompts(const SelfGeneration& model) {
  int64_t possible = 0;
  for (const Document& prompt : model.prompts) {
    possible += std::min(model.options.longest, model.max_sequence - std::ssize(prompt.ids));
    if (possible >= model.options.tokens) return;
  }
  throw UsageError(fmt::format(
      "{} self-generated tokens were requested, but the data has only {} prompts, whose "
      "continuations have at most {} tokens in total; give more data, or allow longer answers",
      model.options.tokens, model.prompts.size(), possible));
}

// Lists other ways in which the model may fit, to end a sentence.
std::string OtherWays(const SelfGeneration& model) {
  std::string ways;
  if (model.dtype == at::kFloat) ways += ", or use bf16, in which weights take half as much";
  if (!model.device.is_cpu())
    ways +=
        fmt::format(", or use the CPU, where {:.0f} GB are free", Gigabytes(AvailableHostBytes()));
  return ways;
}

std::optional<SelfGenerationPlan> PlanStreamed(Planner& planner, uint64_t limit) {
  LoopOptions loop;
  for (int smaller = 0; smaller < 6; ++smaller, loop.expert_bytes /= 4) {
    for (int64_t batch = std::min(kMostStreamed, planner.continuations()); batch > 0; batch /= 2)
      if (auto plan = planner.Try(/*resident=*/false, batch, loop, limit)) return plan;
  }
  return std::nullopt;
}

}  // namespace

SelfGenerationPlan PlanSelfGeneration(const SelfGeneration& model, uint64_t limit) {
  CheckPrompts(model);
  limit = static_cast<uint64_t>(kUsable * static_cast<double>(limit));
  Planner planner(model);
  std::optional<SelfGenerationPlan> plan;
  for (int64_t batch = std::min(kMostResident, planner.continuations()); batch > 0 && !plan;
       batch /= 2)
    plan = planner.Try(/*resident=*/true, batch, {}, limit);
  if (!plan) {
    const uint64_t needed = planner.needed();
    plan = PlanStreamed(planner, limit);
    const char* place = model.device.is_cpu() ? "memory" : "GPU memory";
    if (!plan) {
      throw ResourceError(
          fmt::format("generating text, one sequence at a time, needs {:.2f} GB of {} with all "
                      "weights in memory, or {:.2f} GB if the weights are read again for every "
                      "token, but only {:.2f} GB may be used",
                      Gigabytes(needed), place, Gigabytes(planner.needed()), Gigabytes(limit)),
          Remedy::kShorterAnswers);
    }
    if (!model.options.stream) {
      throw ResourceError(fmt::format(
          "generating text needs {:.2f} GB of {} with all weights in memory, but only {:.2f} GB "
          "may be used; otherwise, each of {} steps reads the weights again, {:.2f} TB in total; "
          "allow that with --self-stream, or ask for fewer tokens or shorter answers{}",
          Gigabytes(needed), place, Gigabytes(limit), plan->steps,
          static_cast<double>(plan->bytes_read) / 1e12, OtherWays(model)));
    }
  }
  plan->seconds = static_cast<double>(plan->steps) * static_cast<double>(plan->batch) *
                  static_cast<double>(plan->weight_bytes) /
                  static_cast<double>(c10::elementSize(model.dtype)) /
                  StepRate(model.device, model.dtype, plan->batch);
  return *plan;
}

}  // namespace oscar
