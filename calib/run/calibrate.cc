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
#include "calib/run/layer_exchange.h"
#include "calib/run/layer_pipeline.h"
#include "calib/run/shard_directory.h"
#include "calib/run/tensor_file.h"
#include "calib/search/refine_choice.h"
#include "capture/ranks/rank_group.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Continues where the job stands: a model needs the hidden states the job kept. `job`: null on a
// rank that has none.
void Resume(const CalibrationInput& input, const JobDirectory* job, const LayerExchange* exchange) {
  ModelSource* const model = input.running_model();
  if (model == nullptr) return;
  at::Tensor hidden;
  if (job != nullptr) {
    const auto saved = job->HiddenPath();
    if (!saved) return;
    hidden = at::empty({input.job_tokens(), model->loop().spec().hidden_size}, input.dtype);
    ReadTensors(*saved, {{"hidden", hidden}}, Remedy::kStartOver);
  }
  model->Restore(exchange == nullptr ? hidden : exchange->ScatterHidden(hidden));
}

// What the option table cannot check alone: it does not know the model.
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
    throw UsageError(fmt::format("layer {} has latent attention, of which {} has no 2-bit cache; "
                                 "consumers {} do",
                                 layer_id, rules.name, fmt::join(others, " and ")),
                     Remedy::kOtherConsumer);
  }
  if (automatic.refine > 0) {
    throw UsageError(fmt::format(
        "layer {} has latent attention, whose one row is key and value, and cannot be refined: "
        "refinement learns a matrix for each",
        layer_id));
  }
}

// Throws UsageError where `options` ask for fewer bits than 2-bit codes take.
void CheckBits(const std::vector<LayerSpec>& layers, const CalibrationOptions& options) {
  const AutoOptions& automatic = options.automatic;
  std::vector<LayerElements> elements;
  for (const LayerSpec& layer : layers) {
    const AttentionSpec& spec = layer.attention;
    AutoChoice writer;
    writer.SetWriter(RulesOf(automatic.consumer), options, spec.head_dim,
                     spec.latent ? spec.head_dim : spec.v_head_dim);
    elements.push_back(
        spec.latent
            ? LatentElementsOf(spec.head_dim, spec.latent->rope_dim, writer.Groups())
            : ElementsOf(spec.num_kv_heads, spec.head_dim, spec.v_head_dim, writer.Groups()));
  }
  const double least = LeastStoredBits(elements);
  if (StoredBits(automatic, elements) < least - 1e-9) {
    throw UsageError(fmt::format(
        "{:g} bits per element were asked for, and 2-bit codes take {:g} with their scales and "
        "zeros; give at least that, or 2 for 2-bit codes, whatever they take",
        automatic.bits, least));
  }
}

void CheckAutomatic(const std::vector<LayerSpec>& layers, const CalibrationOptions& options) {
  const AutoOptions& automatic = options.automatic;
  if (!automatic.enabled) return;
  bool latents = false;
  for (const LayerSpec& layer : layers) {
    if (!layer.attention.latent) continue;
    latents = true;
    CheckAutomaticLatents(layer.layer_id, automatic, RulesOf(automatic.consumer));
  }
  CheckBits(layers, options);
  for (const AutoOptions& other : OtherChoices(automatic, latents)) {
    CalibrationOptions as_other = options;
    as_other.automatic = other;
    CheckBits(layers, as_other);
  }
}

}  // namespace

ModelSource* CalibrationInput::model() const { return dynamic_cast<ModelSource*>(source.get()); }

const RankShare& JobRanks::own() const {
  return shares.at(shard ? *shard : static_cast<size_t>(group->rank()));
}

const std::vector<int64_t>& CalibrationInput::lengths() const {
  return ranks.lengths.empty() ? source->sequence_lengths() : ranks.lengths;
}

int64_t CalibrationInput::num_tokens() const {
  return std::accumulate(lengths().begin(), lengths().end(), int64_t{0});
}

HeldOutSplit CalibrationInput::Split() const {
  return SplitOf(lengths(), domains, options, counted);
}

int64_t CalibrationInput::job_tokens() const {
  return ranks.shard ? ranks.own().num_tokens : num_tokens();
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
  throw UsageError(
      fmt::format("{:g} bits per element were asked for, and {} stores 2 bits everywhere; the "
                  "consumer 'any' stores others",
                  automatic.bits, rules.name),
      Remedy::kOtherConsumer);
}

HeldOutSplit CheckCalibration(const CalibrationInput& input) {
  CheckOptions(input.options);
  CheckQuantization(input.source->layers(), input.options.clip);
  HeldOutSplit split = input.Split();
  const int64_t tokens = split.NumFitQueries() + split.NumHeldOutQueries();  // whose queries count
  for (const LayerSpec& layer : input.source->layers()) {
    const int64_t dim = std::max(layer.attention.head_dim, layer.attention.v_head_dim);
    const int64_t needed = input.options.min_tokens >= 0 ? input.options.min_tokens : 20 * dim;
    if (tokens < needed) {
      throw InputError(
          fmt::format("the data holds {} tokens{}, and every head must see at least {} ({}): with "
                      "fewer the covariances are noise and the "
                      "rotations look right but are not; give more data, or a lower limit "
                      "(min_tokens), which the artifact will say",
                      tokens, input.counted.empty() ? "" : " whose queries count", needed,
                      input.options.min_tokens >= 0 ? std::string("min_tokens")
                                                    : fmt::format("20 * head_dim {}", dim)));
    }
  }
  CheckAutomatic(input.source->layers(), input.options);
  if (input.options.clip.mode == ClipMode::kSearch && split.held_out_tokens == 0) {
    throw InputError("no tokens are held out, so clip ratios cannot be searched",
                     Remedy::kHoldOutMore);
  }
  const std::vector<int64_t>& lengths = input.lengths();
  int64_t rows = 0;  // of the document that has most
  for (size_t i = 0; i < lengths.size(); ++i)
    rows = std::max(rows, split.NumKeptRows(i, lengths[i], input.options.error_rows));
  if (input.options.automatic.enabled && rows < 2) {
    throw InputError(
        "no document has two rows that are held out and kept (error_rows), one to "
        "choose by and one to judge by",
        Remedy::kHoldOutMore);
  }
  return split;
}

namespace {

// Passes on what is not a statistic.
class ReportingObserver : public StatisticsObserver {
 public:
  ReportingObserver(const HeldOutSplit& split, int64_t error_rows, int64_t last_queries,
                    int64_t first_sequence, CacheWindows windows, const CalibrationHooks& hooks,
                    PhaseTimes& times, RankGroup* group)
      : StatisticsObserver(split, error_rows, last_queries, first_sequence, windows),
        hooks_(hooks),
        times_(times),
        watch_(group == nullptr ? nullptr : &group->watch()) {}
  void OnExperts(const LayerSpec& layer, const std::vector<int64_t>& tokens) override {
    if (hooks_.on_experts) hooks_.on_experts(layer, tokens);
  }
  void OnWeightsRead(uint64_t bytes) override {
    if (hooks_.on_weights_read) hooks_.on_weights_read(bytes);
  }
  void OnWait(std::string_view what, double seconds) override { times_.Add(what, seconds); }
  void OnLayerBegin(const LayerSpec& layer) override {
    if (watch_ != nullptr) watch_->At(fmt::format("layer {}", layer.layer_id));
    StatisticsObserver::OnLayerBegin(layer);
  }
  void OnAttention(const AttentionView& view) override {
    if (watch_ != nullptr) watch_->Tick();
    StatisticsObserver::OnAttention(view);
  }

 private:
  const CalibrationHooks& hooks_;
  PhaseTimes& times_;
  RankWatch* const watch_;
};

// The layer that the job begins with, on all ranks.
size_t FirstLayer(const JobDirectory* job, const LayerExchange* exchange) {
  const std::string key = "first layer";
  if (exchange == nullptr) return job->finished_layers();
  if (job != nullptr) exchange->group().Set(key, std::to_string(job->finished_layers()));
  return std::stoul(exchange->group().Get(key));
}

[[noreturn]] void ThrowStopped(const JobDirectory& job, size_t num_layers) {
  throw Interrupted(fmt::format("stopped after {} of {} layers; the work so far is in {}",
                                job.finished_layers(), num_layers, job.path().string()));
}

void RunLayers(const CalibrationInput& input, JobDirectory* job, const CalibrationHooks& hooks) {
  const HeldOutSplit split = CheckCalibration(input);
  const size_t num_layers = input.source->layers().size();
  const JobRanks& ranks = input.ranks;
  std::optional<LayerExchange> of_ranks;
  if (ranks.group != nullptr) of_ranks.emplace(input, split);
  const LayerExchange* const exchange = of_ranks ? &*of_ranks : nullptr;
  const size_t first_layer = FirstLayer(job, exchange);
  if (first_layer >= num_layers) return;
  if (first_layer > 0) Resume(input, job, exchange);

  PhaseTimes unused;
  PhaseTimes& times = hooks.times == nullptr ? unused : *hooks.times;
  const AutoOptions& automatic = input.options.automatic;
  const bool refines = automatic.enabled && automatic.refine > 0;
  const auto first_sequence =
      exchange == nullptr && !ranks.shard ? 0 : static_cast<int64_t>(ranks.own().first_sequence);
  ReportingObserver observer(
      split, input.options.error_rows, refines ? kRefinedQueries : 0, first_sequence,
      {input.options.sink_tokens, input.options.recent_tokens}, hooks, times, ranks.group);
  LayerPipeline pipeline(input, split, job, exchange, hooks, times);
  const auto stop_requested = [&] { return hooks.stop_requested && hooks.stop_requested(); };
  // Layers from here on are complete when the last one is, and so are fitted then.
  const size_t first_held = input.source->first_shared_layer();
  using Commit = LayerPipeline::Commit;
  bool stopped = false;
  auto begin = PhaseTimes::Clock::now();
  input.source->Run(first_layer, observer, [&](size_t index) {
    const bool last = index + 1 == num_layers;
    times.Add("layers launched",
              std::chrono::duration<double>(PhaseTimes::Clock::now() - begin).count());
    stopped = !last && stop_requested();
    Commit commit = Commit::kIfDue;
    if (exchange != nullptr) {
      const auto time = times.Measure("rank 0 awaited");
      const auto agreed = exchange->Agree(index, {stopped, pipeline.IsCommitDue()});
      stopped = agreed.stop && !last;
      if (!input.device.is_cpu()) commit = agreed.commit ? Commit::kNow : Commit::kNever;
    }
    if (index < first_held) {
      const bool now = stopped || index + 1 == first_held;
      pipeline.Put(index, observer.TakeOnDevice(index), now ? Commit::kNow : commit);
    } else {
      observer.Hold(index);
    }
    for (size_t held = first_held; last && held < num_layers; ++held)
      pipeline.Put(held, observer.TakeOnDevice(held), Commit::kNever);
    if (exchange == nullptr && !stopped && !last && pipeline.all_committed())
      stopped = stop_requested();
    begin = PhaseTimes::Clock::now();
    return !stopped;
  });
  pipeline.Finish();
  if (!stopped) return;
  if (job == nullptr) throw Interrupted("stopped with all ranks");
  ThrowStopped(*job, num_layers);
}

// What shards have observed instead of a model that runs.
void FitShards(const CalibrationInput& input, JobDirectory& job, const CalibrationHooks& hooks) {
  const HeldOutSplit split = CheckCalibration(input);
  const size_t num_layers = input.source->layers().size();
  PhaseTimes unused;
  PhaseTimes& times = hooks.times == nullptr ? unused : *hooks.times;
  LayerPipeline pipeline(input, split, &job, nullptr, hooks, times);
  bool stopped = false;
  for (size_t index = job.finished_layers(); index < num_layers && !stopped; ++index) {
    LayerOnDevice observed;
    {
      const auto time = times.Measure("shards read");
      observed = input.shards->ReadLayer(input, split, index);
    }
    pipeline.Put(index, std::move(observed), LayerPipeline::Commit::kNow);
    stopped = index + 1 < num_layers && hooks.stop_requested && hooks.stop_requested();
  }
  pipeline.Finish();
  if (stopped) ThrowStopped(job, num_layers);
}

}  // namespace

void RunCalibration(const CalibrationInput& input, JobDirectory& job,
                    const CalibrationHooks& hooks) {
  if (input.shards != nullptr) {
    FitShards(input, job, hooks);
  } else {
    RunLayers(input, &job, hooks);
  }
}

void RunCalibrationOfRank(const CalibrationInput& input, const CalibrationHooks& hooks) {
  RunLayers(input, nullptr, hooks);
}

std::optional<TextLoss> LossOfText(const CalibrationInput& input) {
  const ModelSource* const model = input.model();
  if (model == nullptr || input.ranks.shard) return std::nullopt;
  if (input.shards != nullptr) return MeasureTextLoss(*model, input.shards->ReadTextRows(input));
  if (!HasTextLoss(*model)) return std::nullopt;
  RankGroup* const group = input.ranks.group;
  if (group == nullptr) return MeasureTextLoss(*model);
  std::vector<TextRows> sample;
  for (const auto& [sequence, tokens] : TextSampleOf(input.lengths())) {
    int rank = 0;
    while (!input.ranks.shares[static_cast<size_t>(rank)].Has(sequence)) ++rank;
    const size_t first = input.ranks.shares[static_cast<size_t>(rank)].first_sequence;
    if (rank == group->rank()) {
      const TextRows rows = RowsOf(*model, sequence - first, tokens);
      if (rank == 0) {
        sample.push_back(rows);
      } else {
        group->Send(at::tensor(rows.ids, at::kInt).to(input.device), 0);
        group->Send(rows.hidden, 0);
      }
    } else if (group->rank() == 0) {
      const at::Tensor ids = at::empty({tokens}, at::dtype(at::kInt).device(input.device));
      const at::Tensor hidden =
          at::empty({tokens, model->hidden().size(1)}, model->hidden().options());
      group->Receive(ids, rank)();
      group->Receive(hidden, rank)();
      const at::Tensor host = ids.cpu();
      const auto* begin = host.const_data_ptr<int32_t>();
      sample.push_back({{begin, begin + tokens}, hidden});
    }
  }
  if (group->rank() != 0) return std::nullopt;
  return MeasureTextLoss(*model, std::move(sample));
}

}  // namespace oscar
