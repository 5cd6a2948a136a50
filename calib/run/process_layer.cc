// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/process_layer.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "calib/choose/choice_points.h"
#include "calib/fit/fit.h"
#include "calib/search/attention_error.h"
#include "calib/search/choice_search.h"
#include "calib/search/clip_search.h"
#include "calib/search/refine_choice.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Held-out rows of all sequences. [tokens, num_kv_heads, dim]
at::Tensor HeldOutRows(const std::vector<at::Tensor>& sequences,
                       const std::vector<int64_t>& fit_rows) {
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (fit_rows[i] < sequences[i].size(0)) rows.push_back(sequences[i].slice(0, fit_rows[i]));
  }
  return at::cat(rows);
}

std::vector<int64_t> Lengths(const std::vector<at::Tensor>& sequences) {
  std::vector<int64_t> lengths;
  for (const at::Tensor& sequence : sequences) lengths.push_back(sequence.size(0));
  return lengths;
}

// Chooses the ratio that minimizes the sum of both sides' relative errors; the larger one on ties.
void ShareClip(const std::vector<double>& candidates, SideResult& k, SideResult& v) {
  size_t best = 0;
  const auto error = [&](size_t i) { return k.clip_error[i] + v.clip_error[i]; };
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (error(i) < error(best) || (error(i) == error(best) && candidates[i] > candidates[best]))
      best = i;
  }
  k.clip_ratio = v.clip_ratio = candidates[best];
}

// A latent row is stored once, so it has one clip ratio, that of keys.
double FixedValueClip(const ObservedLayer& observed, const ClipOptions& clip) {
  return observed.fit.latent ? clip.fixed_k : clip.fixed_v;
}

void ChooseClipping(const ObservedLayer& observed, const HeldOutSplit& split, ValueTarget target,
                    const ClipOptions& clip, LayerFit& fit) {
  if (clip.mode == ClipMode::kFixed) {
    fit.k.clip_ratio = fit.k_shared.clip_ratio = clip.fixed_k;
    fit.v.clip_ratio = fit.v_shared.clip_ratio = FixedValueClip(observed, clip);
    return;
  }
  std::vector<Matrix> query, value;
  for (int64_t head = 0; head < observed.fit.num_kv_heads; ++head) {
    query.push_back(observed.fit.QueryCovariance(head));
    value.push_back(observed.fit.ValueCovariance(head, target));
  }
  const auto search = [&](const std::vector<at::Tensor>& sequences,
                          const std::vector<Matrix>& importance, SideResult& per_head,
                          SideResult& shared) {
    const at::Tensor rows = HeldOutRows(sequences, split.fit_rows);
    for (SideResult* side : {&per_head, &shared}) {
      const int64_t group = clip.quant_group_size == 0 ? side->dim : clip.quant_group_size;
      SearchClip(rows, importance, clip.candidates, group, *side);
    }
  };
  search(observed.keys, query, fit.k, fit.k_shared);
  search(observed.values, value, fit.v, fit.v_shared);
  if (!observed.fit.latent) return;
  ShareClip(clip.candidates, fit.k, fit.v);
  ShareClip(clip.candidates, fit.k_shared, fit.v_shared);
}

std::vector<ArmResult> MeasureArms(const ObservedLayer& observed, const LayerSpec& spec,
                                   const LayerFit& fit, std::span<const CacheArm> more,
                                   const ClipOptions& clip, const CacheWindows& windows) {
  const SideResult identity_k = IdentitySide(spec.attention.head_dim),
                   identity_v = IdentitySide(spec.attention.v_head_dim);
  const SideResult hadamard_k = HadamardSide(spec.attention.head_dim),
                   hadamard_v = HadamardSide(spec.attention.v_head_dim);
  std::vector<CacheArm> arms = {
      {"naive", &identity_k, &identity_v, 0, 0},
      {"hadamard", &hadamard_k, &hadamard_v, 0, 0},
      {"hadamard_clip", &hadamard_k, &hadamard_v, clip.fixed_k, FixedValueClip(observed, clip)},
      {"oscar_shared", &fit.k_shared, &fit.v_shared, fit.k_shared.clip_ratio,
       fit.v_shared.clip_ratio},
      {"oscar_per_head", &fit.k, &fit.v, fit.k.clip_ratio, fit.v.clip_ratio}};
  arms.insert(arms.end(), more.begin(), more.end());
  return MeasureAttentionError(observed, spec, arms, windows, clip.quant_group_size,
                               ErrorType(observed.keys.at(0).device().type()));
}

// Returns the texts that refinement uses: the fitted rows, or all rows.
RefinedTexts TextsOf(const ObservedLayer& observed, const HeldOutSplit& split, bool fitted_to) {
  RefinedTexts texts;
  for (size_t i = 0; i < observed.keys.size(); ++i) {
    // If the tail of a text is held out, so are its last queries.
    const int64_t tokens = observed.keys[i].size(0), last = observed.last_queries[i].size(0);
    if (fitted_to && split.fit_rows[i] < tokens) continue;
    at::Tensor counted;
    if (const std::vector<uint8_t>* of = split.CountedOf(i)) {
      if (NumCounted(split.counted, i, tokens - last, tokens) == 0) continue;
      counted =
          at::tensor(std::vector<float>(of->end() - last, of->end())).to(observed.keys[i].device());
    }
    texts.counted.push_back(counted);
    texts.keys.push_back(observed.keys[i]);
    texts.values.push_back(observed.values[i]);
    texts.last_queries.push_back(observed.last_queries[i]);
  }
  return texts;
}

// Adds arms for a choice at every point where it may end, the current point first.
void AddPoints(const AutoOptions& options, const AutoChoice& choice, std::vector<CacheArm>& arms) {
  for (const ChoicePoint& point : PointsOf(options, choice))
    arms.push_back({.name = "auto", .choice = &choice, .point = point});
}

// Decides on held-out rows whether the layer keeps its refinement, and records that in the choice.
void DecideRefinement(const ArmResult& before, const ArmResult& after, AutoChoice& choice) {
  choice.unrefined_kl = before.kl_mean;
  choice.refined_kl = after.kl_mean;
  choice.refined =
      after.kl_mean < before.kl_mean && after.output_rel_error <= before.output_rel_error;
}

// Adds the arm "auto" for the final choice, and "auto_unrefined" if it is refined.
void AddChoiceArms(const AutoOptions& options, const AutoChoice& refined,
                   std::vector<ArmResult> measured, LayerResult& result) {
  AutoChoice& choice = result.automatic;
  const std::vector<ChoicePoint> points = PointsOf(options, choice);
  const auto count = std::ssize(points);
  auto kept = measured.begin();
  if (refined.made) {
    OSCAR_CHECK_EQ(std::ssize(measured), 2 * count);
    DecideRefinement(measured[0], measured[points.size()], choice);
    result.arms.push_back(measured[0]);
    result.arms.back().name = "auto_unrefined";
    if (choice.refined) kept += count;
  }
  for (size_t i = 0; i < points.size(); ++i, ++kept) {
    kept->name = "auto";
    if (i == 0) {
      result.arms.push_back(*kept);
    } else {
      result.auto_arms.push_back({points[i], *kept});
    }
  }
}

}  // namespace

LayerResult ProcessLayer(ObservedLayer observed, const LayerSpec& spec, const HeldOutSplit& split,
                         const CalibrationOptions& options, PhaseTimes& times) {
  LayerMoments all = observed.fit;
  if (observed.held_out.tokens > 0) all.Merge(observed.held_out);
  // Fits on host threads, while the device works.
  const auto fit = [&](const LayerMoments& moments) {
    return std::async(std::launch::async, [&] {
      const auto time = times.Measure("fit");
      return FitLayer(moments, options.fit);
    });
  };
  const bool judges = split.kind != HeldOutKind::kNone;
  const bool chooses = judges && options.automatic.enabled;
  const bool diagonal = chooses || options.fit.value_target == ValueTarget::kDiagonal;
  std::future<LayerFit> judging;  // fits without the held-out rows
  if (judges && !diagonal) judging = fit(observed.fit);
  {
    const auto time = times.Measure("diagonal target");
    AddDiagonalTarget(observed.keys, observed.values, Lengths(observed.keys), all);
    all.CheckFinite();
    if (judges && diagonal)
      AddDiagonalTarget(observed.keys, observed.values, split.fit_rows, observed.fit);
  }
  if (!judging.valid()) judging = fit(judges ? observed.fit : all);
  LayerFit judged = judging.get();
  std::future<LayerFit> publishing = fit(all);

  LayerResult result;
  {
    const auto time = times.Measure("clip search");
    ChooseClipping(observed, split, options.fit.value_target, options.clip, judged);
  }
  std::future<std::vector<AutoChoice>> choosing;  // the choices, fitted to all tokens
  if (chooses) {
    const auto time = times.Measure("automatic choice");
    std::vector<AutoChoice> choices =
        SearchChoices(observed, spec, options.search(),
                      OtherChoices(options.automatic, spec.attention.latent.has_value()), times);
    result.automatic = choices.front();
    // Returns freed memory, so that the peaks of the search and of measuring errors do not add up.
    if (observed.keys.at(0).is_cpu()) malloc_trim(0);
    choosing = std::async(std::launch::async, [&all, choices = std::move(choices)]() mutable {
      FitChoices(all, choices);
      return std::move(choices);
    });
  }
  AutoChoice refined;
  if (chooses && options.automatic.refine > 0) {
    const auto time = times.Measure("refinement");
    refined = result.automatic;
    RefineChoice(TextsOf(observed, split, /*fitted_to=*/true), spec.attention, options.windows(),
                 options.automatic.refine, observed.fit, refined);
  }
  if (judges) {
    const auto time = times.Measure("attention errors");
    std::vector<CacheArm> choices;
    if (chooses) AddPoints(options.automatic, result.automatic, choices);
    if (refined.made) AddPoints(options.automatic, refined, choices);
    std::vector<ArmResult> arms =
        MeasureArms(observed, spec, judged, choices, options.clip, options.windows());
    const auto of_choices = arms.end() - std::ssize(choices);
    result.arms.assign(arms.begin(), of_choices);
    if (chooses) AddChoiceArms(options.automatic, refined, {of_choices, arms.end()}, result);
  }
  if (chooses) {
    std::vector<AutoChoice> all_tokens = choosing.get();
    AutoChoice& headline = all_tokens.front();
    headline.refined = result.automatic.refined;
    headline.refined_kl = result.automatic.refined_kl;
    headline.unrefined_kl = result.automatic.unrefined_kl;
    result.automatic = std::move(headline);
    result.other_choices.assign(std::make_move_iterator(all_tokens.begin() + 1),
                                std::make_move_iterator(all_tokens.end()));
  }
  if (result.automatic.refined) {
    const auto time = times.Measure("refinement");
    RefineChoice(TextsOf(observed, split, /*fitted_to=*/false), spec.attention, options.windows(),
                 options.automatic.refine, all, result.automatic);
  }
  if (options.clip.mode == ClipMode::kSearch) result.clip_candidates = options.clip.candidates;

  LayerFit published = publishing.get();
  const auto time = times.Measure("thresholds");
  const auto finish = [&](SideResult& side, const SideResult& from,
                          const std::vector<at::Tensor>& rows) {
    side.clip_ratio = from.clip_ratio;
    side.clip_error = from.clip_error;
    StaticThresholds(rows, side);
  };
  finish(published.k, judged.k, observed.keys);
  finish(published.v, judged.v, observed.values);
  finish(published.k_shared, judged.k_shared, observed.keys);
  finish(published.v_shared, judged.v_shared, observed.values);
  result.moments = std::move(all);
  result.k = std::move(published.k);
  result.v = std::move(published.v);
  result.k_shared = std::move(published.k_shared);
  result.v_shared = std::move(published.v_shared);
  return result;
}

}  // namespace oscar
