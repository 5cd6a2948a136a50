// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/refine_choice.h"

#include <ATen/ATen.h>

#include <utility>

#include "calib/cache/side_tensors.h"
#include "calib/fit/feedback_fit.h"
#include "calib/moments/position_spread.h"
#include "calib/search/rotation_refinement.h"

namespace oscar {
namespace {

std::vector<double> ToDoubles(const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kDouble).cpu().contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

HeadTransforms Transforms(const CacheSide& side, at::Device device) {
  const auto tensor = [&](const std::vector<double>& values) {
    return MatricesOf(values, side.dim, side.dim, device);
  };
  HeadTransforms transforms{tensor(side.rotation), {}};
  if (!side.query_rotation.empty())
    transforms.inverse = tensor(side.query_rotation).transpose(1, 2).contiguous();
  return transforms;
}

// Layers with one rotation for all KV heads are not refined.
bool CanRefine(const CacheSide& side, int64_t num_kv_heads) {
  return side.num_rotations == num_kv_heads;
}

void Take(const HeadTransforms& refined, CacheSide& side) {
  side.num_rotations = refined.transform.size(0);
  side.rotation = ToDoubles(refined.transform);
  if (refined.inverse.defined()) side.query_rotation = ToDoubles(refined.inverse.transpose(1, 2));
}

// One text as attention sees it after pair scaling, shifted by `offset` positions.
RefinementSequence Sequence(const RefinedTexts& texts, size_t index, const CacheSide& keys,
                            const RopeSpec& rope, int64_t offset) {
  at::Tensor k = AtOffset(texts.keys[index], rope, offset).to(at::kFloat);
  const int64_t tokens = k.size(0), heads = k.size(1);
  at::Tensor last = AtOffset(texts.last_queries[index], rope, offset).to(at::kFloat);
  if (!keys.pair_scale.empty()) {
    const at::Tensor scale = MatricesOf(keys.pair_scale, 1, keys.dim, k.device());  // [heads, 1, d]
    k = k.mul(scale.squeeze(1));
    last = last.view({last.size(0), heads, -1, keys.dim}).div(scale).flatten(1, 2);
  }
  at::Tensor q = at::zeros({tokens, last.size(1), last.size(2)}, last.options());
  q.narrow(0, tokens - last.size(0), last.size(0)).copy_(last);
  RefinementSequence sequence{q, k, texts.values[index].to(at::kFloat)};
  if (const at::Tensor& counted = texts.counted[index]; counted.defined()) {
    sequence.counted = at::zeros({tokens}, last.options());
    sequence.counted.narrow(0, tokens - last.size(0), last.size(0)).copy_(counted);
  }
  return sequence;
}

}  // namespace

void RefineChoice(const RefinedTexts& texts, const AttentionSpec& attention,
                  const CacheWindows& windows, int64_t steps, const LayerMoments& moments,
                  AutoChoice& choice) {
  const bool keys = CanRefine(choice.k, attention.num_kv_heads);
  const bool values = CanRefine(choice.v, attention.num_kv_heads);
  if (steps == 0 || (!keys && !values)) return;
  std::vector<RefinementSequence> sequences;
  for (size_t i = 0; i < texts.keys.size(); ++i) {
    // Texts that fit into the windows have no quantized tokens to learn from.
    if (texts.keys[i].size(0) <= windows.sink + windows.recent) continue;
    const bool shifted = attention.rope.rotary_dim > 0 && i % 2 == 1;
    sequences.push_back(
        Sequence(texts, i, choice.k, attention.rope, shifted ? choice.context / 2 : 0));
  }
  if (sequences.empty()) return;
  const at::Device device = sequences[0].k.device();
  RefinementProblem problem{attention, SplitRows(std::move(sequences)), {}, {}};
  if (!choice.k.mean.empty())
    problem.key_mean = MatricesOf(choice.k.mean, 1, choice.k.dim, device).squeeze(1);
  RefinementOptions options{
      .steps = static_cast<int>(steps), .queries = kRefinedQueries, .windows = windows};
  options.k = choice.Quantizer(choice.k_option(), /*of_keys=*/true);
  options.v = choice.Quantizer(choice.v_option(), /*of_keys=*/false);
  if (keys) Take(RefineKeys(problem, Transforms(choice.k, device), options).transforms, choice.k);
  if (choice.keys.feedback) {
    FitKeyFeedback(SpreadOverPositions(moments, choice.text_length, choice.context), choice.k);
  }
  if (values) {
    Take(RefineValues(problem, Transforms(choice.v, device), Transforms(choice.k, device), options)
             .transforms,
         choice.v);
  }
}

}  // namespace oscar
