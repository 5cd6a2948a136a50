// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/next_token_cost.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "calib/cache/row_comparison.h"
#include "capture/model/run/output_head.h"
#include "export/evaluate/bootstrap.h"
#include "export/simulate/chosen_cache.h"
#include "export/validate/cached_attention.h"
#include "export/validate/token_errors.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kAttentionRows = 32;  // rows per sequence

// Observes the trials: stream i + 1 runs trials[streams[i]]. Stream 0 is the exact model.
class TrialObserver : public LayerObserver {
 public:
  // `streams` lists the trials of streams 1, 2, ..., as indices into `trials`.
  TrialObserver(const NextTokenRun& run, std::span<const CacheTrial> trials,
                const std::vector<size_t>& streams)
      : run_(run), trials_(trials), streams_(streams) {}

  void OnLayerBegin(const LayerSpec&) override { caches_.clear(); }
  bool Attend(const AttentionView& view) override {
    if (view.stream == 0) return false;
    const CacheTrial& trial = trials_[streams_[view.stream - 1]];
    if (view.layer_index < trial.first_layer) return false;
    const TrialSides sides = trial.sides(view.layer_index);
    if (sides.exact()) return false;
    const LayerCache& cache = CacheOf(view, sides);
    const AttendedRows read = AttendCached(view, cache, cache.store({view.k, view.v}), masks_);
    if (trial.attention != nullptr && view.layer_index == trial.first_layer)
      AddAttention(view, read.stored, streams_[view.stream - 1]);
    return true;
  }
  // Writes the attention errors into the trials that request them.
  void FinishAttention() {
    for (const auto& [trial, sums] : attention_) {
      trials_[trial].attention->kl = sums.kl / sums.rows;
      trials_[trial].attention->output_error =
          sums.output > 0 ? std::sqrt(sums.error / sums.output) : 0;
    }
  }
  void OnAttention(const AttentionView& /*view*/) override {}
  void OnLayerEnd(const LayerSpec&) override { masks_.Clear(); }

 private:
  struct AttentionSums {
    double kl = 0, error = 0, output = 0, rows = 0;
  };

  // Adds the attention errors of rows that are spread evenly over the second half of the sequence.
  void AddAttention(const AttentionView& view, const CacheSides& stored, size_t trial) {
    const int64_t tokens = view.q.size(0), first = tokens / 2;
    at::Tensor positions = at::arange(
        first, tokens, std::max<int64_t>(1, (tokens - first) / kAttentionRows), at::kLong);
    if (!run_.counted.empty()) {  // if no query counts, the positions above stay
      const std::vector<int64_t> rows =
          CountedRows(run_.counted, static_cast<size_t>(view.sequence), first, tokens);
      const int64_t step = std::max<int64_t>(1, std::ssize(rows) / kAttentionRows);
      if (!rows.empty()) positions = at::tensor(rows, at::kLong).slice(0, 0, {}, step);
    }
    RowComparison comparison(view.layer.attention, view.k, view.v, at::kFloat,
                             RowDetail::kKlAndOutput);
    comparison.SetRows({positions, view.q.index_select(0, positions.to(view.q.device()))});
    const RowComparison::Prepared prepared = comparison.Prepare({stored.k, stored.v});
    const RowComparison::ExactMasks none[] = {{}};
    const RowErrors errors = comparison.Compare(prepared, {}, none).at(0);
    const auto sum = [](const at::Tensor& x) { return x.sum(at::kDouble).item<double>(); };
    AttentionSums& sums = attention_[trial];
    sums.kl += sum(errors.kl);
    sums.error += sum(errors.output_error_sq);
    sums.output += sum(comparison.reference().output_sq);
    sums.rows += static_cast<double>(errors.kl.numel());
  }

  // Trials that store a layer in the same way share the cache.
  const LayerCache& CacheOf(const AttentionView& view, const TrialSides& sides) {
    const bool typed = sides.types != LayerTypes();
    if (!typed && (!choice_layer_ || view.layer_index != *choice_layer_)) {
      choice_ = run_.choice(view.layer_index);
      choice_layer_ = view.layer_index;
    }
    if (view.layer_index != layer_) caches_.clear();
    layer_ = view.layer_index;
    const auto [found, is_new] = caches_.try_emplace(sides);
    if (!is_new) return found->second;
    if (typed) {
      const RotatedSides written = TypedSides(sides.types, run_.largest(view.layer_index));
      found->second.store = [written](const CacheSides& rows) {
        return CachedRows{
            .quantized = {RoundTrip(written.k, rows.k), RoundTrip(written.v, rows.v)}};
      };
      return found->second;
    }
    const auto codes = [&](const SideOption* option, bool keys) {
      return option == nullptr ? AffineQuantizer{.bits = {0}} : choice_.Quantizer(*option, keys);
    };
    LayerCache& cache = found->second;
    cache = ChoiceCache({choice_.k, choice_.v, codes(sides.k, true), codes(sides.v, false)},
                        view.layer.attention.num_kv_heads, ExactInWindows(run_.windows));
    if (view.layer.attention.latent) {
      cache.store = [once = std::get<LayerCache::StoreOnce>(cache.otherwise)](
                        const CacheSides& rows) { return once(rows.k); };
    }
    return cache;
  }

  const NextTokenRun& run_;
  std::span<const CacheTrial> trials_;
  const std::vector<size_t>& streams_;
  size_t layer_ = 0;
  std::optional<size_t> choice_layer_;  // the layer of choice_
  AutoChoice choice_;
  std::map<TrialSides, LayerCache> caches_;
  std::map<size_t, AttentionSums> attention_;  // by trial
  MixedMasks masks_;
};

// Returns the first layer whose keys and values later layers also read. Trials must begin there or
// earlier.
size_t FirstShared(const ModelSpec& spec) {
  size_t first = spec.layers.size();
  for (const LayerSpec& layer : spec.uncached) {
    if (!layer.attention.shared_kv) continue;
    const auto found =
        std::ranges::find(spec.layers, *layer.attention.shared_kv, &LayerSpec::layer_id);
    first = std::min(first, static_cast<size_t>(found - spec.layers.begin()));
  }
  return first;
}

NextTokenCost CostOf(const TokenErrors& errors) {
  NextTokenCost cost;
  cost.mean = std::accumulate(errors.kl.begin(), errors.kl.end(), 0.0) /
              static_cast<double>(errors.kl.size());
  const double most[] = {0.99};
  cost.p99 = Quantiles(errors.kl, most)[0];
  return cost;
}

}  // namespace

std::vector<NextTokenCost> MeasureNextToken(const NextTokenRun& run,
                                            std::span<const CacheTrial> trials) {
  LoopOptions options;
  options.in_latent_space = true;
  options.cache_dtype = at::kBFloat16;
  options.prefetch = run.prefetch;
  options.token_ids = &run.sequences;
  const LayerLoop loop(run.checkpoint, run.spec, run.device, run.dtype, options);
  std::vector<int64_t> lengths;
  for (const auto& sequence : run.sequences) lengths.push_back(std::ssize(sequence));
  const size_t first_shared = FirstShared(run.spec);
  const auto begins = [&](size_t trial) {
    return std::min(trials[trial].first_layer, first_shared);
  };
  std::vector<size_t> order(trials.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, begins);
  std::vector<at::Tensor> streams = {loop.Embed(run.sequences)};
  streams.resize(1 + order.size(), streams[0].new_empty({0, streams[0].size(1)}));
  size_t begun = 0;
  const auto begin_at = [&](size_t layer) {
    for (; begun < order.size() && begins(order[begun]) == layer; ++begun)
      streams[begun + 1] = streams[0].clone();
  };
  TrialObserver observer(run, trials, order);
  bool stopped = false;
  begin_at(0);
  loop.Run(streams, lengths, 0, observer, [&](size_t index) {
    if (run.on_layer) run.on_layer(index + 1);
    begin_at(index + 1);
    stopped = run.stop_requested && run.stop_requested();
    return !stopped;
  });
  if (stopped) throw Interrupted("stopped while measuring next-token KL; finished layers are kept");
  observer.FinishAttention();
  const OutputHead head(run.checkpoint, run.spec, {run.device, run.dtype});
  const int64_t inside = run.windows.sink + run.windows.recent;
  std::vector<ScoredToken> tokens = ScoredTokens(run.sequences, 0, 0, inside, run.counted);
  // A passage may end before the first query that counts. Then all queries that see quantized
  // tokens count instead.
  if (tokens.empty()) tokens = ScoredTokens(run.sequences, 0, 0, inside);
  const std::vector<TokenErrors> errors = CompareTokens(head, streams, tokens);
  std::vector<NextTokenCost> costs(trials.size());
  for (size_t i = 0; i < order.size(); ++i) costs[order[i]] = CostOf(errors[i + 1]);
  return costs;
}

namespace {

bool IsMeasured(const SideOption& option, MeasuredWidths widths) {
  return widths == MeasuredWidths::kAll || option.bits == std::floor(option.bits);
}

// Interpolates the missing costs between whole numbers of bits. It is log-linear, because costs
// fall by about the same factor per bit.
void PriceBetween(std::vector<SideOption>& options) {
  for (SideOption& option : options) {
    if (!option.next_token_kl.empty()) continue;
    const SideOption *below = nullptr, *above = nullptr;
    for (const SideOption& whole : options) {
      if (!IsMeasured(whole, MeasuredWidths::kWhole)) continue;
      if (whole.bits < option.bits) below = &whole;
      if (whole.bits > option.bits && above == nullptr) above = &whole;
    }
    OSCAR_CHECK(below != nullptr && above != nullptr);
    const double share = (option.bits - below->bits) / (above->bits - below->bits);
    std::vector<double> costs;
    for (size_t i = 0; i < below->next_token_kl.size(); ++i) {
      costs.push_back(std::pow(below->next_token_kl[i], 1 - share) *
                      std::pow(above->next_token_kl[i], share));
    }
    option.next_token_kl = std::move(costs);
  }
}

}  // namespace

size_t NumMeasured(const std::vector<AutoChoice>& choices, MeasuredWidths widths) {
  const auto is_measured = [&](const SideOption& option) { return IsMeasured(option, widths); };
  int64_t measured = 0;
  for (const AutoChoice& choice : choices) {
    measured += std::ranges::count_if(choice.k_options, is_measured);
    if (!choice.latent()) measured += std::ranges::count_if(choice.v_options, is_measured);
  }
  return static_cast<size_t>(measured);
}

void PriceOptions(const NextTokenRun& run, MeasuredWidths widths,
                  std::vector<AutoChoice>& choices) {
  std::vector<CacheTrial> trials;
  std::vector<SideOption*> priced;  // by trial
  const auto add = [&](size_t layer, const TrialSides& sides, SideOption& option) {
    if (!IsMeasured(option, widths)) return;
    trials.push_back(
        {layer, [layer, sides](size_t index) { return index == layer ? sides : TrialSides{}; }});
    priced.push_back(&option);
  };
  for (size_t layer = 0; layer < choices.size(); ++layer) {
    AutoChoice& choice = choices[layer];
    for (SideOption& k : choice.k_options) add(layer, {&k, choice.latent() ? &k : nullptr}, k);
    for (SideOption& v : choice.v_options)
      if (!choice.latent()) add(layer, {nullptr, &v}, v);
  }
  const std::vector<NextTokenCost> costs = MeasureNextToken(run, trials);
  for (size_t i = 0; i < costs.size(); ++i)
    priced[i]->next_token_kl = {costs[i].mean, costs[i].p99};
  for (AutoChoice& choice : choices) {
    PriceBetween(choice.k_options);
    if (choice.latent()) {
      for (size_t i = 0; i < choice.v_options.size(); ++i)
        choice.v_options[i].next_token_kl = choice.k_options[i].next_token_kl;
    } else {
      PriceBetween(choice.v_options);
    }
  }
}

std::vector<NextTokenCost> MeasureWhole(const NextTokenRun& run,
                                        std::span<const std::vector<AutoChoice>> planned) {
  std::vector<CacheTrial> trials;
  for (const std::vector<AutoChoice>& choices : planned) {
    trials.push_back({0, [&choices](size_t layer) {
                        return TrialSides{&choices[layer].k_option(), &choices[layer].v_option()};
                      }});
  }
  return MeasureNextToken(run, trials);
}

void PriceTypes(const NextTokenRun& run, std::span<const CacheType> types,
                std::vector<TypedLayer>& layers) {
  struct Priced {
    TypeCost* cost;
    AttentionCost attention;
  };
  std::vector<CacheTrial> trials;
  std::vector<Priced> priced;  // by trial
  for (TypedLayer& layer : layers) {
    layer.k.assign(types.size(), {});
    layer.v = layer.k;
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const bool keys : {true, false}) {
      for (size_t t = 0; t < types.size(); ++t) {
        TypeCost& cost = (keys ? layers[i].k : layers[i].v)[t];
        cost.type = types[t];
        const LayerTypes stored = keys ? LayerTypes{.k = types[t]} : LayerTypes{.v = types[t]};
        trials.push_back({i, [i, stored](size_t index) {
                            return index == i ? TrialSides{.types = stored} : TrialSides{};
                          }});
        priced.push_back({&cost, {}});
      }
    }
  }
  for (size_t i = 0; i < trials.size(); ++i) trials[i].attention = &priced[i].attention;
  const std::vector<NextTokenCost> costs = MeasureNextToken(run, trials);
  for (size_t i = 0; i < costs.size(); ++i) {
    priced[i].cost->token = costs[i];
    priced[i].cost->attention_kl = priced[i].attention.kl;
    priced[i].cost->output_error = priced[i].attention.output_error;
  }
}

std::vector<NextTokenCost> MeasureTypes(const NextTokenRun& run,
                                        std::span<const std::vector<LayerTypes>> plans) {
  std::vector<CacheTrial> trials;
  for (const std::vector<LayerTypes>& plan : plans)
    trials.push_back({0, [&plan](size_t layer) { return TrialSides{.types = plan[layer]}; }});
  return MeasureNextToken(run, trials);
}

}  // namespace oscar
