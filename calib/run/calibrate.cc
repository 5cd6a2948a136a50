// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/calibrate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "calib/choose/layer_plan.h"
#include "calib/observe/statistics_observer.h"
#include "calib/run/layer_pipeline.h"
#include "calib/run/layer_transport.h"
#include "calib/run/tensor_file.h"
#include "calib/search/refine_choice.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Checks the clip options against the model, which the option table cannot do.
void CheckQuantization(const std::vector<LayerSpec>& layers, const ClipOptions& clip) {
  for (const LayerSpec& layer : layers) {
    for (int64_t dim : {layer.attention.head_dim, layer.attention.v_head_dim}) {
      if (clip.quant_group_size > 0 && dim % clip.quant_group_size != 0) {
        throw UsageError(
            fmt::format("quant_group_size {} does not divide the head dimension {} of layer {}",
                        clip.quant_group_size, dim, layer.layer_id));
      }
    }
  }
  if (clip.mode == ClipMode::kSearch &&
      (clip.candidates.empty() ||
       !std::is_sorted(clip.candidates.begin(), clip.candidates.end()))) {
    throw UsageError("clip_candidates must be a list of ratios in ascending order");
  }
}

void CheckAutomaticLatents(int layer_id, const AutoOptions& automatic, const ConsumerRules& rules) {
  if (!rules.latents) {
    std::vector<std::string_view> others;
    for (const ConsumerRules& other : AllConsumers()) {
      if (other.latents) others.push_back(other.name);
    }
    throw UsageError(fmt::format("layer {} has latent attention, for which {} has no 2-bit cache; "
                                 "the runtimes {} have one",
                                 layer_id, rules.name, fmt::join(others, " and ")),
                     Remedy::kOtherConsumer);
  }
  if (automatic.refine > 0) {
    throw UsageError(fmt::format(
        "layer {} has latent attention, whose single row is key and value, so it cannot be "
        "refined, because refinement learns one matrix for keys and one for values",
        layer_id));
  }
}

// Throws UsageError if fewer bits are requested than 2-bit codes take.
void CheckBits(const std::vector<LayerSpec>& layers, const AutoOptions& automatic,
               int64_t quant_group_size) {
  std::vector<LayerElements> elements;
  for (const LayerSpec& layer : layers) {
    const AttentionSpec& spec = layer.attention;
    AutoChoice writer;
    writer.SetWriter(automatic, quant_group_size, spec.head_dim,
                     spec.latent ? spec.head_dim : spec.v_head_dim);
    elements.push_back(
        spec.latent
            ? LatentElementsOf(spec.head_dim, spec.latent->rope_dim, writer.Groups())
            : ElementsOf(spec.num_kv_heads, spec.head_dim, spec.v_head_dim, writer.Groups()));
  }
  const double least = LeastStoredBits(elements);
  if (StoredBits(automatic, elements) < least - 1e-9) {
    throw UsageError(
        fmt::format("{:g} bits per element were requested, but 2-bit codes with their scales and "
                    "zeros take {:g}; give at least that many, or 2, which means 2-bit codes "
                    "whatever their scales and zeros take",
                    automatic.bits, least));
  }
}

void CheckAutomatic(const std::vector<LayerSpec>& layers, const AutoOptions& automatic,
                    int64_t quant_group_size) {
  if (!automatic.enabled) return;
  bool latents = false;
  for (const LayerSpec& layer : layers) {
    if (!layer.attention.latent) continue;
    latents = true;
    CheckAutomaticLatents(layer.layer_id, automatic, RulesOf(automatic.consumer));
  }
  CheckBits(layers, automatic, quant_group_size);
  for (const AutoOptions& other : OtherChoices(automatic, latents))
    CheckBits(layers, other, quant_group_size);
}

}  // namespace

const std::vector<int64_t>& CalibrationInput::lengths() const {
  return ranks.lengths.empty() ? source->sequence_lengths() : ranks.lengths;
}

const std::vector<int64_t>& CalibrationInput::job_lengths() const {
  return ranks.apart ? source->sequence_lengths() : lengths();
}

int64_t CalibrationInput::num_tokens() const {
  return std::accumulate(lengths().begin(), lengths().end(), int64_t{0});
}

int64_t CalibrationInput::job_tokens() const {
  return std::accumulate(job_lengths().begin(), job_lengths().end(), int64_t{0});
}

HeldOutSplit CalibrationInput::Split() const {
  return SplitOf(lengths(), domains, options.held_out, options.automatic.enabled, counted);
}

LoopOptions CalibrationLoopOptions() {
  LoopOptions options;
  options.need_final_hidden = false;
  options.shared_queries = true;
  options.in_latent_space = true;
  return options;
}

void CheckOptions(const CalibrationOptions& options) {
  const AutoOptions& automatic = options.automatic;
  const ConsumerRules& rules = RulesOf(automatic.consumer);
  if (!automatic.enabled || automatic.bits == 2 || rules.any_bits) return;
  throw UsageError(fmt::format("{:g} bits per element were requested, but {} stores 2 bits "
                               "everywhere; the runtime 'any' can store other numbers of bits",
                               automatic.bits, rules.name),
                   Remedy::kOtherConsumer);
}

HeldOutSplit CheckCalibration(const CalibrationInput& input) {
  CheckOptions(input.options);
  CheckQuantization(input.source->layers(), input.options.clip);
  HeldOutSplit split = input.Split();
  const int64_t tokens = split.NumFitQueries() + split.NumHeldOutQueries();  // counted tokens
  for (const LayerSpec& layer : input.source->layers()) {
    const int64_t dim = std::max(layer.attention.head_dim, layer.attention.v_head_dim);
    const int64_t needed = input.options.min_tokens >= 0 ? input.options.min_tokens : 20 * dim;
    if (tokens < needed) {
      throw InputError(fmt::format(
          "the data has {} tokens{}, but every head must see at least {} ({}); with fewer, the "
          "covariances are mostly noise, and nothing would show that the rotations are bad; give "
          "more data, or lower the limit with --min-tokens, which the artifact records",
          tokens, input.counted.empty() ? "" : " whose queries count", needed,
          input.options.min_tokens >= 0 ? std::string("min_tokens")
                                        : fmt::format("20 * head_dim {}", dim)));
    }
  }
  CheckAutomatic(input.source->layers(), input.options.automatic,
                 input.options.clip.quant_group_size);
  if (input.options.clip.mode == ClipMode::kSearch && split.held_out_tokens == 0) {
    throw InputError("no tokens are held out, so clip ratios cannot be searched for",
                     Remedy::kHoldOutMore);
  }
  const std::vector<int64_t>& lengths = input.lengths();
  int64_t rows = 0;  // most kept rows of any document
  for (size_t i = 0; i < lengths.size(); ++i)
    rows = std::max(rows, split.NumKeptRows(i, lengths[i], input.options.error_rows));
  if (input.options.automatic.enabled && rows < 2) {
    throw InputError(
        "no document has two held-out rows (at most --error-rows are kept of each), but one is "
        "needed to choose with and one to judge with; give longer documents",
        Remedy::kHoldOutMore);
  }
  return split;
}

namespace {

// Forwards all reports that are not statistics to the hooks.
class ReportingObserver : public StatisticsObserver {
 public:
  ReportingObserver(const CalibrationInput& input, const HeldOutSplit& split,
                    const LayerTransport& transport, const CalibrationHooks& hooks,
                    PhaseTimes& times)
      : StatisticsObserver(
            split, input.options.error_rows, QueriesToRefine(input.options.automatic),
            static_cast<int64_t>(input.ranks.own().first_sequence), input.options.windows()),
        transport_(transport),
        hooks_(hooks),
        times_(times) {}
  void OnExperts(const LayerSpec& layer, const std::vector<int64_t>& tokens) override {
    if (hooks_.on_experts) hooks_.on_experts(layer, tokens);
  }
  void OnWeightsRead(uint64_t bytes) override {
    if (hooks_.on_weights_read) hooks_.on_weights_read(bytes);
  }
  void OnWait(std::string_view what, double seconds) override { times_.Add(what, seconds); }
  void OnLayerBegin(const LayerSpec& layer) override {
    transport_.At(layer);
    StatisticsObserver::OnLayerBegin(layer);
  }
  void OnAttention(const AttentionView& view) override {
    transport_.Tick();
    StatisticsObserver::OnAttention(view);
  }

 private:
  const LayerTransport& transport_;
  const CalibrationHooks& hooks_;
  PhaseTimes& times_;
};

// Resumes a run. A model that continues needs the hidden states that the job has kept.
void Resume(const CalibrationInput& input, const JobDirectory& job,
            const LayerTransport& transport) {
  ModelSource* const model = input.running_model();
  if (model == nullptr) return;
  at::Tensor hidden;
  if (const auto saved = job.HiddenPath()) {
    hidden = at::empty({input.job_tokens(), model->loop().spec().hidden_size}, input.dtype);
    ReadTensors(*saved, {{"hidden", hidden}}, Remedy::kStartOver);
  }
  model->Restore(transport.Scatter(hidden));
}

}  // namespace

void RunCalibration(const CalibrationInput& input, JobDirectory& job,
                    const CalibrationHooks& hooks) {
  const HeldOutSplit split = CheckCalibration(input);
  PhaseTimes unused;
  PhaseTimes& times = hooks.times == nullptr ? unused : *hooks.times;
  const auto transport = LayerTransport::Of(input, split, times);
  const size_t num_layers = input.source->layers().size(), first = transport->FirstLayer(job);
  if (first >= num_layers) return;
  if (first > 0) Resume(input, job, *transport);

  ReportingObserver observer(input, split, *transport, hooks, times);
  LayerPipeline pipeline(input, split, *transport, job, hooks, times);
  const auto stop_requested = [&] { return hooks.stop_requested && hooks.stop_requested(); };
  // Layers from here on are complete only after the last layer, so they are fitted then.
  const size_t first_held = input.source->first_shared_layer();
  bool stopped = false;
  auto begin = PhaseTimes::Clock::now();
  input.source->Run(first, observer, [&](size_t index) {
    const bool last = index + 1 == num_layers;
    times.Add("layers launched",
              std::chrono::duration<double>(PhaseTimes::Clock::now() - begin).count());
    const auto agreed =
        transport->Agree(index, {!last && stop_requested(), pipeline.CommitAfter(index)});
    stopped = agreed.stop && !last;
    if (index < first_held) {
      const bool now = stopped || index + 1 == first_held;
      pipeline.Put(index, observer.TakeOnDevice(index), now ? Commit::kNow : agreed.commit);
    } else {
      observer.Hold(index);
    }
    for (size_t held = first_held; last && held < num_layers; ++held)
      pipeline.Put(held, observer.TakeOnDevice(held), Commit::kNever);
    if (transport->size() == 1 && !stopped && !last && pipeline.all_committed())
      stopped = stop_requested();
    begin = PhaseTimes::Clock::now();
    return !stopped;
  });
  pipeline.Finish();
  if (stopped) throw job.Stopped(num_layers);
}

std::optional<TextLoss> LossOfText(const CalibrationInput& input) {
  ModelSource* const model = input.model();
  if (model == nullptr) return std::nullopt;
  PhaseTimes unused;
  return MeasureTextLoss(*model, LayerTransport::Of(input, {}, unused)->GatherText(*model));
}

}  // namespace oscar
