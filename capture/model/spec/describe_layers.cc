// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/describe_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace oscar {
namespace {

// Lists each distinct text once with its count, in order of first appearance.
class Counts {
 public:
  void Add(const std::string& text) {
    const auto found = std::ranges::find(counts_, text, &std::pair<std::string, size_t>::first);
    if (found == counts_.end()) {
      counts_.emplace_back(text, 1);
    } else {
      ++found->second;
    }
  }
  void AppendTo(std::vector<std::string>& lines) const {
    for (const auto& [text, count] : counts_) lines.push_back(fmt::format("{} x {}", count, text));
  }

 private:
  std::vector<std::pair<std::string, size_t>> counts_;
};

std::string Geometry(const AttentionSpec& a) {
  std::string text;
  if (a.latent) {
    text = fmt::format("{} query heads over a latent of {} and {} with position", a.num_q_heads,
                       a.latent->rank, a.latent->rope_dim);
  } else {
    text = fmt::format("{} query heads, {} KV heads, head_dim {}", a.num_q_heads, a.num_kv_heads,
                       a.head_dim);
    if (a.v_head_dim != a.head_dim) text += fmt::format(" (values {})", a.v_head_dim);
  }
  if (a.window) text += fmt::format(", window {}", *a.window);
  return text;
}

}  // namespace

std::vector<std::string> DescribeLayers(const ModelSpec& spec) {
  Counts cached, uncached, experts;
  for (const LayerSpec* layer : AllLayers(spec)) {
    if (layer->delta_net) {
      uncached.Add(fmt::format("linear attention, {} heads: no KV cache, no rotation",
                               layer->delta_net->num_v_heads));
    } else if (layer->has_cache()) {
      cached.Add(Geometry(layer->attention));
    } else {
      uncached.Add("reads the keys and values of another layer, no rotation of its own");
    }
    if (layer->experts) {
      experts.Add(fmt::format("{} experts, {} per token{}", layer->experts->num_experts,
                              layer->experts->router.top_k,
                              layer->experts->shared_size > 0 ? ", plus a shared one" : ""));
    }
  }
  std::vector<std::string> lines;
  cached.AppendTo(lines);
  uncached.AppendTo(lines);
  experts.AppendTo(lines);
  return lines;
}

}  // namespace oscar
