// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/served_arms.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "capture/model/run/output_head.h"
#include "export/artifact/artifact_format.h"
#include "export/report/of_record.h"
#include "export/simulate/methods/serving_faults.h"
#include "export/simulate/runtime_choice.h"
#include "export/validate/cached_attention.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Observes the streams; stream i runs arms[i].
class ServedObserver : public LayerObserver {
 public:
  ServedObserver(const MethodContext& context, const std::vector<Arm>& arms, int64_t prompt_tokens)
      : context_(context), arms_(arms), prompt_tokens_(prompt_tokens), masks_(arms.size()) {}

  void OnLayerBegin(const LayerSpec&) override {
    caches_.resize(1);
    for (size_t i = 1; i < arms_.size(); ++i)
      caches_.push_back(MakeLayerCache(*arms_[i].method, context_, layer_index_, arms_[i].options));
    ++layer_index_;
  }
  // The prompt's attention outputs are copied from the exact model, so hidden states up to the end
  // of the prompt are equal in all streams.
  bool Attend(const AttentionView& view) override {
    if (view.stream == 0) return false;
    const LayerCache& cache = caches_[view.stream];
    AttendCached(view, cache, cache.store({view.k, view.v}), masks_[view.stream]);
    OfPrompt(view).copy_(of_prompts_.at(view.sequence));
    return true;
  }
  void OnAttention(const AttentionView& view) override {
    if (view.stream == 0) of_prompts_[view.sequence] = OfPrompt(view).clone();
  }
  void OnLayerEnd(const LayerSpec&) override {
    of_prompts_.clear();
    for (MixedMasks& masks : masks_) masks.Clear();
  }

 private:
  at::Tensor OfPrompt(const AttentionView& view) const {
    return view.attn_out.slice(0, 0, prompt_tokens_);
  }

  const MethodContext& context_;
  const std::vector<Arm>& arms_;
  int64_t prompt_tokens_;
  size_t layer_index_ = 0;
  std::vector<LayerCache> caches_;
  std::vector<MixedMasks> masks_;
  std::map<int64_t, at::Tensor> of_prompts_;  // outputs of the current layer, by sequence
};

}  // namespace

std::vector<std::string> ArmsOfArtifact(const Artifact& artifact) {
  std::vector<std::string> names = OwnArms(artifact.report());
  // Identifies a runtime's cache by the choice that it loads, and by how it stores and rounds it.
  const auto cache_of = [&](const RuntimeSpec& runtime) {
    return std::tuple(ServedChoice(runtime, artifact), runtime.as_chosen, runtime.window_rows,
                      runtime.native_layers, runtime.metadata_group);
  };
  std::set<decltype(cache_of({}))> caches;
  const int64_t num_layers = std::ssize(artifact.layer_ids());
  const auto add = [&](const RuntimeSpec& runtime) {
    const std::string choice = ServedChoice(runtime, artifact);
    const bool is_auto = runtime.as_chosen && choice == kHeadlineChoice;  // added below
    // If all layers are edge layers, which the runtime does not quantize, its cache is exact.
    const bool exact = 2 * std::min(runtime.native_layers, num_layers / 2) >= num_layers;
    if (!runtime.chosen || choice.empty() || is_auto || exact) return;
    if (caches.insert(cache_of(runtime)).second && runtime.method != names[0])
      names.emplace_back(runtime.method);
  };
  for (const RuntimeSpec& runtime : Runtimes())
    if (runtime.method == names[0]) add(runtime);  // skips other runtimes with this cache
  std::ranges::for_each(Runtimes(), add);
  names.insert(names.end(),
               {"auto+windows", "oscar_per_head+clip+windows", "oscar_shared+clip+windows"});
  return names;
}

ServedArms MakeServedArms(const std::vector<std::string>& own,
                          const std::vector<std::string>& others, const MethodContext& context) {
  if (HasLatents(context))
    throw UsageError(
        "--served does not support models with latent attention, because their servers' caches are "
        "not simulated");
  ServedArms served{.arms = {ParseArm(kReferenceArm)}, .num_own = 0};
  const auto add = [&](const std::string& name) {
    const std::string_view method = std::string_view(name).substr(0, name.find('+'));
    const auto found = std::ranges::find(CacheMethods(), method, &CacheMethod::name);
    if (found == CacheMethods().end() || (found->available && !found->available(context))) return;
    const Arm arm = ParseArm(name);
    if (std::ranges::find(served.arms, arm.name, &Arm::name) == served.arms.end())
      served.arms.push_back(arm);
  };
  std::ranges::for_each(own, add);
  served.num_own = served.arms.size() - 1;
  if (served.num_own == 0) {
    throw InputError(fmt::format("{}: contains nothing for {}",
                                 context.artifact().directory().string(), fmt::join(own, ", ")));
  }
  const Arm right = served.arms[1];
  for (const auto& fault : ServingFaults(*right.method, right.options, context))
    served.arms.push_back({std::string(fault->name), fault, {}});
  if (right.options.clip) add(fmt::format("{}+windows", right.method->name));
  add("hadamard+windows");
  add("hadamard+clip+windows");
  std::ranges::for_each(others, add);
  return served;
}

std::vector<TokenErrors> ScoreServed(const LayerLoop& loop, const ServedText& text,
                                     const MethodContext& context, const std::vector<Arm>& arms,
                                     const std::function<bool(size_t layer_index)>& on_layer) {
  OSCAR_CHECK(!arms.empty() && arms[0].is_reference());
  std::vector<int64_t> lengths;
  for (const auto& sequence : text.sequences) lengths.push_back(std::ssize(sequence));
  std::vector<at::Tensor> streams = {loop.Embed(text.sequences)};
  while (streams.size() < arms.size()) streams.push_back(streams[0].clone());
  ServedObserver observer(context, arms, text.prompt_tokens);
  bool go_on = true;
  loop.Run(streams, lengths, 0, observer, [&](size_t index) { return go_on = on_layer(index); });
  if (!go_on) throw Interrupted("stopped; no results were kept");
  const OutputHead head(loop.checkpoint(), loop.spec(), {loop.device(), loop.dtype()});
  return CompareTokens(head, streams, ScoredTokens(text.sequences, 0, text.prompt_tokens, 0));
}

}  // namespace oscar
