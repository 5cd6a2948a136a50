// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of a validation of a model or a dump, in order. Longer than 400 lines because they
// belong together.
#include "export/validate/validate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "calib/run/provenance.h"
#include "capture/model/run/device.h"
#include "capture/model/run/output_head.h"
#include "capture/model/run/weight_loader.h"
#include "export/evaluate/position_buckets.h"
#include "export/evaluate/recall.h"
#include "export/report/of_record.h"
#include "export/report/verdict_text.h"
#include "export/validate/answer_errors.h"
#include "export/validate/by_domain.h"
#include "export/validate/calibration_rows.h"
#include "export/validate/capacity.h"
#include "export/validate/divergence.h"
#include "export/validate/stream_memory.h"
#include "export/validate/token_errors.h"
#include "export/validate/validation_job.h"
#include "export/validate/validation_observer.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;

// Tokens that a GPU processes at once. With fewer, it would wait for kernel launches. A recall
// sample of the default length fits.
constexpr int64_t kTokensAtOnce = 8192;

int64_t NumExactTokens(const ValidationOptions& options) {
  return options.methods.windows.sink + options.methods.windows.recent;
}

// Chooses the rows to measure. Throws InputError if none of them counts in headline numbers.
MeasuredRows RowsToMeasure(const std::vector<int64_t>& lengths, const CountedQueries& counted,
                           const ValidationOptions& options) {
  MeasuredRows rows{{}, options.methods.windows, options.resamples, options.seed};
  const int64_t exact = NumExactTokens(options);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<int64_t> positions = CountedRows(counted, i, 0, lengths[i]);
    for (const int64_t row : SelectRows(std::ssize(positions), options.rows_per_sequence)) {
      const int64_t position = positions[static_cast<size_t>(row)];
      rows.rows.push_back({.sequence = static_cast<int64_t>(i),
                           .position = position,
                           .length = lengths[i],
                           .headline = position >= FirstHeadlineRow(lengths[i], exact)});
    }
  }
  if (std::ranges::none_of(rows.rows, &MeasuredRow::headline)) {
    throw InputError(
        fmt::format("no query sees a quantized key, because windows keep {} tokens exact and no "
                    "text has queries beyond them that count; give longer text, or smaller "
                    "--sink-tokens and --recent-tokens",
                    exact));
  }
  return rows;
}

std::string ClipRatios(const Arm& arm, const MethodContext::Options& options) {
  if (arm.options.clip_ratio > 0) return fmt::format("{:g}", arm.options.clip_ratio);
  if (!arm.method->clip_ratios.empty()) return arm.method->clip_ratios;
  return fmt::format("keys {:g}, values {:g}", options.k_clip, options.v_clip);
}

// Returns the index of the arm called `name`, or 0 (the exact model) if there is none.
size_t IndexOf(const std::vector<Arm>& arms, std::string_view name) {
  const auto found = std::ranges::find(arms, name, &Arm::name);
  return found == arms.end() ? 0 : static_cast<size_t>(found - arms.begin());
}

// The part that validations of a model and of a dump have in common.
class Validation {
 public:
  Validation(const Artifact& artifact, const std::vector<LayerSpec>& layers,
             const std::vector<int64_t>& measured_lengths, const CountedQueries& counted,
             bool end_to_end, bool has_rows, const ValidationOptions& options,
             const ValidationHooks& hooks)
      : options_(options),
        hooks_(hooks),
        context_(artifact, layers, options.methods),
        arms_(ParseArms(options.arms, context_, has_rows)),
        rows_(RowsToMeasure(measured_lengths, counted, options)),
        headline_(HeadlineArm(arms_, OwnArms(artifact.report()), options.headline_arm).name),
        recall_(RecallArms(arms_, headline_, options.needle_arms, options.arms)),
        places_(TakeShare()),
        observer_(context_, arms_, rows_,
                  {.measure_dtype = options.measure_in_float32 ? at::kFloat : at::kDouble,
                   .end_to_end = end_to_end,
                   .by_distance = IndexOf(arms_, headline_)}),
        started_(Clock::now()) {}

  MethodContext& context() { return context_; }
  ValidationObserver& observer() { return observer_; }
  const std::vector<Arm>& arms() const { return arms_; }
  const std::vector<size_t>& recall_arms() const { return recall_; }  // indices into arms()

  bool AfterLayer(size_t layer_index) {
    const size_t done = layer_index + 1, all = context_.layers().size();
    if (hooks_.on_layer)
      hooks_.on_layer(done, all, std::chrono::duration<double>(Clock::now() - started_).count());
    started_ = Clock::now();
    stopped_ = done < all && hooks_.stop_requested && hooks_.stop_requested();
    return !stopped_;
  }
  void CheckNotStopped() const {
    if (stopped_) {
      throw Interrupted(hooks_.job == nullptr || observer_.ReadsLayerBefore()
                            ? "stopped; no results were kept"
                            : "stopped; finished layers are kept");
    }
  }

  // `tokens` is the context length for which bits per element are computed.
  Json ArmReport(size_t index, int64_t tokens) const {
    const Arm& arm = arms_[index];
    const CacheCost bits = arm.method->cost(context_, arm.options, tokens);
    Json json = {
        {"name", arm.name},
        {"method", arm.method->name},
        {"description", arm.method->description},
        {"clip", arm.options.clip},
        {"windows", arm.options.windows},
        {"null_control", arm.method->null_control},
        {"bits_per_element", {{"paper", bits.paper}, {"actual", bits.actual}, {"tokens", tokens}}},
        {"local", observer_.LocalMetrics(index)}};
    if (hooks_.on_arm) hooks_.on_arm(arm.name, observer_.Seconds(index));
    if (observer_.num_streams() > 1) json["end_to_end"] = observer_.EndToEndMetrics(index);
    return json;
  }

  // `domains` has one name per text. A run with a single process also calls FinishArms.
  Json Report(const char* source, const std::string& compute_dtype, const Json& arms,
              const std::vector<std::string>& domains) const {
    Json names = Json::array();
    Json clip = Json::object();  // how an arm's clip ratios are set
    const MethodContext::Options& methods = options_.methods;
    for (const Arm& arm : arms_) {
      names.push_back(arm.name);
      if (arm.options.clip) clip[arm.name] = ClipRatios(arm, methods);
    }
    Json settings = {{"sink_tokens", methods.windows.sink},
                     {"recent_tokens", methods.windows.recent},
                     {"quant_group_size", methods.quant_group_size},
                     {"clip", clip},
                     {"cache_dtype", options_.round_to_bf16 ? "bf16" : compute_dtype},
                     {"compute_dtype", compute_dtype},
                     {"measure_dtype", options_.measure_in_float32 ? "f32" : "f64"},
                     {"seed", options_.seed},
                     {"bootstrap", options_.resamples},
                     {"arms", names}};
    const bool in_pieces = methods.prefill_tokens != MethodContext::Options{}.prefill_tokens;
    settings["prefill_tokens"] = in_pieces ? Json(methods.prefill_tokens) : Json("all");
    settings["rows_per_sequence"] =
        options_.rows_per_sequence == 0 ? Json("all") : Json(options_.rows_per_sequence);
    Json report = {
        {"source", source}, {"settings", settings}, {"headline_arm", headline_}, {"arms", arms}};
    if (const auto by_distance = observer_.ByDistance()) report["by_distance"] = *by_distance;
    report[kTextDomains] = domains;
    if (options_.share.ranks > 1) {
      report[kArmPlaces] = places_;
    } else {
      FinishArms(report);
    }
    return report;
  }

 private:
  // Keeps only the arms of this process and returns their indices among all arms.
  std::vector<size_t> TakeShare() {
    std::vector<size_t> places = ShareOfArms(options_.share, arms_.size(), recall_);
    std::vector<Arm> own;
    std::vector<size_t> recall;
    for (const size_t arm : places) {
      if (std::ranges::find(recall_, arm) != recall_.end()) recall.push_back(own.size());
      own.push_back(arms_[arm]);
    }
    arms_ = std::move(own);
    recall_ = std::move(recall);
    return places;
  }

  const ValidationOptions& options_;
  const ValidationHooks& hooks_;
  MethodContext context_;
  std::vector<Arm> arms_;
  MeasuredRows rows_;
  std::string headline_;
  std::vector<size_t> recall_;  // indices into arms_
  std::vector<size_t> places_;  // indices of arms_ among the arms of all processes
  ValidationObserver observer_;
  Clock::time_point started_;
  bool stopped_ = false;
};

// Passes calls to the validation's own observer, and then to one that only watches
// (ValidationHooks::beside). Reports a layer's progress as the share of the streams' `tokens` that
// went through attention.
class ObserverPair : public LayerObserver {
 public:
  ObserverPair(LayerObserver& first, const ValidationHooks& hooks, const std::vector<Arm>& arms,
               std::vector<std::string> sequences, int64_t tokens)
      : first_(first),
        second_(hooks.beside),
        hooks_(hooks),
        arms_(arms),
        sequences_(std::move(sequences)),
        tokens_(tokens) {}
  void OnLayerBegin(const LayerSpec& layer) override {
    done_ = 0;
    first_.OnLayerBegin(layer);
    if (second_ != nullptr) second_->OnLayerBegin(layer);
  }
  bool Attend(const AttentionView& view) override { return first_.Attend(view); }
  void OnAttention(const AttentionView& view) override {
    first_.OnAttention(view);
    if (second_ != nullptr) second_->OnAttention(view);
    done_ += view.q.size(0);
    if (!hooks_.on_part) return;
    hooks_.on_part(std::min(1.0, static_cast<double>(done_) / static_cast<double>(tokens_)),
                   fmt::format("{}: {}", sequences_.at(static_cast<size_t>(view.sequence)),
                               arms_[view.stream].name));
  }
  void OnLayerEnd(const LayerSpec& layer) override {
    first_.OnLayerEnd(layer);
    if (second_ != nullptr) second_->OnLayerEnd(layer);
  }

 private:
  LayerObserver& first_;
  LayerObserver* second_;
  const ValidationHooks& hooks_;
  const std::vector<Arm>& arms_;
  std::vector<std::string> sequences_;  // names of the sequences
  int64_t tokens_, done_ = 0;
};

// Appends names like "text 1 of 4".
void AppendNames(const char* what, size_t count, std::vector<std::string>& names) {
  for (size_t i = 1; i <= count; ++i) names.push_back(fmt::format("{} {} of {}", what, i, count));
}

std::vector<int64_t> LengthsOf(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

int64_t NumTokens(std::span<const NeedleSample> samples) {
  int64_t tokens = 0;
  for (const NeedleSample& sample : samples) tokens += std::ssize(sample.ids);
  return tokens;
}

int64_t Sum(const std::vector<int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

}  // namespace

MethodContext::Options MethodOptions(const ValidationOptions& options, const Checkpoint& checkpoint,
                                     const ModelSpec& spec) {
  MethodContext::Options methods = options.methods;
  methods.output_projection = [&checkpoint, &spec](size_t layer_index) {
    WeightLoader loader(checkpoint, {at::kCPU, at::kFloat});
    const at::Tensor weight = loader.Load(spec.layers[layer_index].attention.o.weight);
    loader.Finish();
    return weight;
  };
  return methods;
}

Json ValidateModel(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
                   at::ScalarType dtype, const ValidationData& data, const Artifact& artifact,
                   const ValidationOptions& options, const ValidationHooks& hooks) {
  const std::vector<int64_t> text_lengths = LengthsOf(data.texts);
  std::vector<std::vector<int32_t>> evaluated = data.texts;
  if (!options.local_only) {
    evaluated.insert(evaluated.end(), data.own_words.begin(), data.own_words.end());
    for (const auto* samples : {&data.needles, &data.tool_calls})
      for (const NeedleSample& sample : *samples) evaluated.push_back(sample.ids);
    evaluated.insert(evaluated.end(), data.continuations.begin(), data.continuations.end());
  }
  const int64_t num_tokens = Sum(LengthsOf(evaluated)), own_begin = Sum(text_lengths),
                needles_begin =
                    own_begin + (options.local_only ? 0 : Sum(LengthsOf(data.own_words)));

  std::vector<std::vector<int32_t>> sequences;  // calibration text first
  LoopOptions loop_options;
  loop_options.need_final_hidden = !options.local_only;
  loop_options.in_latent_space = true;
  loop_options.token_ids = &sequences;
  if (!device.is_cpu()) loop_options.token_chunk = kTokensAtOnce;
  if (options.round_to_bf16) loop_options.cache_dtype = at::kBFloat16;
  const LayerLoop loop(checkpoint, spec, device, dtype, loop_options);
  ValidationOptions with_weights = options;
  with_weights.methods = MethodOptions(options, checkpoint, spec);
  Validation validation(artifact, loop.seen_layers(), text_lengths, data.counted,
                        !options.local_only, !data.calibration.empty(), with_weights, hooks);
  if (NeedsRows(validation.arms())) sequences = data.calibration;
  const std::vector<int64_t> calibration_lengths = LengthsOf(sequences);
  const int64_t calibration_tokens = Sum(calibration_lengths);
  sequences.insert(sequences.end(), evaluated.begin(), evaluated.end());
  std::vector<int64_t> stream_tokens(validation.observer().num_streams(), needles_begin);
  if (!options.local_only) {
    for (const size_t arm : validation.recall_arms()) stream_tokens[arm] = num_tokens;
    // The loop ends with the longest stream other than stream 0. So another stream must include the
    // recall samples, even if only the exact model runs them.
    if (validation.recall_arms().size() == 1) stream_tokens.back() = num_tokens;
  }
  const uint64_t available = device.is_cpu() ? AvailableHostBytes() : QueryMemory(device).free;
  const int64_t longest_text = text_lengths.empty() ? 0 : std::ranges::max(text_lengths);
  CheckStreamsFit(StreamMemory(spec, dtype, stream_tokens, longest_text), available, device.str());

  std::vector<at::Tensor> streams = {loop.Embed(sequences)};
  while (streams.size() < stream_tokens.size()) {
    streams.push_back(
        streams[0].narrow(0, calibration_tokens, stream_tokens[streams.size()]).clone());
  }
  std::vector<std::string> names;
  AppendNames("text", data.texts.size(), names);
  AppendNames("own words", data.own_words.size(), names);
  AppendNames("recall", data.needles.size(), names);
  AppendNames("tool call", data.tool_calls.size(), names);
  AppendNames("continuation", data.continuations.size(), names);
  ObserverPair observers(validation.observer(), hooks, validation.arms(), std::move(names),
                         Sum(stream_tokens));
  CalibrationRowsObserver observer(calibration_lengths, validation.context(), observers);
  ValidationJob job(hooks.job, spec, validation.observer());
  const size_t first = job.Resume(streams);
  loop.Run(streams, LengthsOf(sequences), first, observer, [&](size_t index) {
    const bool go_on = validation.AfterLayer(index);
    job.AfterLayer(index, streams, !go_on);
    return go_on;
  });
  validation.CheckNotStopped();
  streams[0] = streams[0].narrow(0, calibration_tokens, num_tokens);

  const std::vector<Arm>& arms = validation.arms();
  Json reports = Json::array(), verdict_text, recall, tool_call;
  std::optional<measures::DeviceCapacity> capacity;
  if (!artifact.budgets().empty()) capacity = DeviceCapacity(spec);
  for (size_t arm = 0; arm < arms.size(); ++arm) {
    reports.push_back(validation.ArmReport(arm, spec.max_positions));
    if (capacity)
      reports[arm]["capacity"] = ArmCapacity(validation.context(), arms[arm], *capacity);
  }
  if (!options.local_only) {
    const OutputHead head(checkpoint, spec, {device, dtype});
    const int64_t exact = NumExactTokens(options);
    const auto text = ScoredTokens(data.texts, 0, options.score_from, exact, data.counted);
    OSCAR_CHECK(!text.empty());
    const std::vector<ScoredToken> own = ScoredTokens(data.own_words, own_begin, -1, exact);
    const auto scored = [&](const char* what) {
      return [&hooks, what](double part) {
        if (hooks.on_scored) hooks.on_scored(part, what);
      };
    };
    const std::vector<TokenErrors> text_errors = CompareTokens(head, streams, text, scored("text"));
    const std::vector<TokenErrors> own_errors =
        CompareTokens(head, streams, own, scored("own words"));
    for (size_t arm = 0; arm < arms.size(); ++arm) {
      reports[arm]["text"] =
          TextReport(text, text_errors[arm], text_errors[0], options.resamples, options.seed);
      if (own.empty()) continue;
      reports[arm]["own_words"] =
          TextReport(own, own_errors[arm], own_errors[0], options.resamples, options.seed);
    }
    verdict_text = VerdictText(reports[0], data.builtin);
    std::vector<at::Tensor> of_recall;  // final hidden states; the exact model's are first
    for (const size_t arm : validation.recall_arms()) of_recall.push_back(streams[arm]);
    const auto score = [&](std::span<const NeedleSample> samples, int64_t first_row,
                           auto report_of_arm) -> Json {
      if (samples.empty()) return nullptr;
      const std::vector<ScoredToken> answers = AnswerTokens(samples, first_row);
      const std::vector<TokenErrors> errors =
          CompareTokens(head, of_recall, answers, scored("recall"));
      const Recall measurable(samples, AnswerScores(samples, answers, errors[0]));
      for (size_t i = 0; i < errors.size(); ++i)
        report_of_arm(reports[validation.recall_arms()[i]], answers, errors[i], measurable);
      return measurable.ToJson();
    };
    recall = score(data.needles, needles_begin,
                   [&](Json& arm, const auto& answers, const auto& errors, const Recall& counts) {
                     if (counts.any())
                       arm["needle"] = counts.Report(AnswerScores(data.needles, answers, errors));
                   });
    tool_call =
        score(data.tool_calls, needles_begin + NumTokens(data.needles),
              [&](Json& arm, const auto& answers, const auto& errors, const Recall& counts) {
                arm["tool_call"] = ToolCallReport(data.tool_calls, answers, errors, counts,
                                                  options.resamples, options.seed);
              });
    if (!data.continuations.empty()) {
      const std::vector<ScoredToken> tokens = ScoredTokens(
          data.continuations, num_tokens - Sum(LengthsOf(data.continuations)), data.prefix_tokens,
          /*exact_tokens=*/0);
      const std::vector<TokenErrors> errors = CompareTokens(head, of_recall, tokens);
      for (size_t i = 0; i < errors.size(); ++i) {
        reports[validation.recall_arms()[i]]["reasoning"] =
            ReasoningReport(tokens, errors[i], options.resamples, options.seed);
      }
    }
  }
  Json report =
      validation.Report("model", std::string(ComputeDTypeName(dtype)), reports, data.domains);
  report["settings"]["score_from"] = options.score_from < 0
                                         ? Json("length / 4 + 1, beyond the windows")
                                         : Json(options.score_from);
  if (!verdict_text.is_null()) report["verdict_text"] = verdict_text;
  if (!recall.is_null()) report["recall"] = recall;
  if (!tool_call.is_null()) report["tool_call"] = tool_call;
  if (capacity) report["capacity"] = *capacity;
  return report;
}

Json ValidateDump(AttentionSource& source, const CountedQueries& counted, const Artifact& artifact,
                  const ValidationOptions& options, const ValidationHooks& hooks,
                  const std::vector<std::string>& domains) {
  const std::vector<LayerSpec>& layers = source.layers();
  Validation validation(artifact, layers, source.sequence_lengths(), counted, false, false, options,
                        hooks);
  std::vector<std::string> names;
  AppendNames("sequence", source.sequence_lengths().size(), names);
  ObserverPair observer(validation.observer(), hooks, validation.arms(), std::move(names),
                        Sum(source.sequence_lengths()));
  source.Run(0, observer, [&](size_t index) { return validation.AfterLayer(index); });
  validation.CheckNotStopped();
  Json reports = Json::array();
  const int64_t longest = std::ranges::max(source.sequence_lengths());
  for (size_t arm = 0; arm < validation.arms().size(); ++arm)
    reports.push_back(validation.ArmReport(arm, longest));
  return validation.Report("dump", "as captured", reports, domains);
}

}  // namespace oscar
