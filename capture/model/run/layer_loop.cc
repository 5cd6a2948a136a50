// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/layer_loop.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "capture/model/run/device.h"
#include "capture/model/run/embedding.h"
#include "capture/model/run/latent_attention.h"
#include "capture/model/run/layer_pass.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/run/output_head.h"
#include "capture/model/run/token_layout.h"
#include "capture/ranks/rank_group.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/base/error_context.h"

namespace oscar {
namespace {

void CheckLength(const ModelSpec& spec, size_t sequence, int64_t length) {
  if (length < 1) throw InputError(fmt::format("sequence {} has no tokens", sequence));
  if (length > spec.max_positions) {
    throw InputError(
        fmt::format("sequence {} has {} tokens, but the model has {} positions ({}); shorten it",
                    sequence, length, spec.max_positions, spec.positions_limit));
  }
}

// Returns spans of all sequences, in token order, that do not cross any of `cuts`.
std::vector<Span> MakeSpansBetween(const std::vector<int64_t>& lengths,
                                   const std::set<int64_t>& cuts, int64_t token_chunk) {
  std::vector<Span> spans;
  auto begin = lengths.begin();
  int64_t first_token = 0;
  for (const int64_t cut : cuts) {
    auto end = begin;
    int64_t token = first_token;
    while (token < cut) token += *end++;
    OSCAR_CHECK_EQ(token, cut);
    for (Span span : MakeSpans({begin, end}, token_chunk)) {
      span.first_sequence += static_cast<size_t>(begin - lengths.begin());
      span.first_token += first_token;
      spans.push_back(span);
    }
    begin = end;
    first_token = cut;
  }
  return spans;
}

// A checksum of all bits.  // [1] int64
at::Tensor SumOfWords(const std::vector<at::Tensor>& tensors, at::Device device) {
  at::Tensor sum = at::zeros({1}, at::dtype(at::kLong).device(device));
  for (const at::Tensor& tensor : tensors) {
    const bool half = tensor.element_size() == 2;
    const at::Tensor words = tensor.contiguous().view(half ? at::kShort : at::kInt);
    sum += words.sum(at::kLong);
  }
  return sum;
}

// Starts to compare the weights that the ranks have loaded for a layer. The returned function
// throws InputError if they differ. Experts are not compared, because only one rank reads each of
// them.
std::function<void()> CompareWeights(RankGroup& ranks, const LayerSpec& layer,
                                     std::vector<at::Tensor> loaded, at::Device device) {
  const at::Tensor sums = ranks.AllGather(SumOfWords(loaded, device));
  const at::Tensor host =
      at::empty(sums.sizes(), at::dtype(at::kLong).pinned_memory(!device.is_cpu()));
  host.copy_(sums, /*non_blocking=*/true);
  std::shared_ptr<c10::Event> there;
  if (!device.is_cpu()) {
    there = std::make_shared<c10::Event>(device.type());
    there->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  return [&ranks, id = layer.layer_id, host, there] {
    if (there) there->synchronize();
    const auto* const of_rank = host.const_data_ptr<int64_t>();
    for (int rank = 1; rank < ranks.size(); ++rank) {
      if (of_rank[rank] == of_rank[0]) continue;
      if (ranks.rank() != 0) (void)ranks.Get("never");  // rank 0 ends the job
      throw InputError(fmt::format(
          "rank {} loaded other weights for layer {} than rank 0, so a file of the model or the "
          "memory is damaged on one of their machines; compare the files' digests (sha256sum)",
          rank, id));
    }
  };
}

}  // namespace

LayerLoop::LayerLoop(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
                     at::ScalarType dtype, const LoopOptions& options)
    : checkpoint_(checkpoint), spec_(spec), device_(device), dtype_(dtype), options_(options) {
  OSCAR_CHECK(options.token_chunk > 0 && options.query_chunk > 0);
  const auto latent = [](const LayerSpec& layer) { return layer.attention.latent.has_value(); };
  if (options.in_latent_space && !options.show_expanded_heads &&
      std::ranges::any_of(spec.layers, latent))
    seen_layers_ = LayersInLatentSpace(spec);
  UseExactArithmetic();
}

at::Tensor LayerLoop::Embed(const std::vector<std::vector<int32_t>>& sequences,
                            std::span<const int64_t> first) const {
  for (size_t s = 0; s < sequences.size(); ++s) {
    CheckLength(spec_, s, static_cast<int64_t>(sequences[s].size()));
    const auto outside = std::ranges::find_if(
        sequences[s], [&](int32_t id) { return id < 0 || id >= spec_.vocab_size; });
    if (outside != sequences[s].end()) {
      throw InputError(
          fmt::format("sequence {}, token {}: id {} is outside the model's vocabulary of 0 to {}; "
                      "check that the tokenizer belongs to this model",
                      s, outside - sequences[s].begin(), *outside, spec_.vocab_size - 1));
    }
  }
  at::Tensor rows = WithErrorContext("embedding tokens", [&] {
    return GatherRows(checkpoint_, spec_.embedding, sequences, {device_, dtype_});
  });
  Scale(rows, spec_.embedding_multiplier, spec_.round_embedding_multiplier);
  if (spec_.position_embedding.empty()) return rows;
  std::vector<std::vector<int32_t>> positions;
  for (size_t s = 0; s < sequences.size(); ++s) {
    positions.emplace_back(sequences[s].size());
    std::iota(positions[s].begin(), positions[s].end(),
              first.empty() ? 0 : static_cast<int32_t>(first[s]));
  }
  return rows.add_(GatherRows(checkpoint_, spec_.position_embedding, positions, {device_, dtype_}));
}

void LayerLoop::Run(at::Tensor& hidden, const std::vector<int64_t>& sequence_lengths,
                    size_t first_layer, LayerObserver& observer,
                    const std::function<bool(size_t layer_index)>& after_layer) const {
  Run(std::span(&hidden, 1), sequence_lengths, first_layer, observer, after_layer);
}

void LayerLoop::Run(std::span<at::Tensor> streams, const std::vector<int64_t>& sequence_lengths,
                    size_t first_layer, LayerObserver& observer,
                    const std::function<bool(size_t layer_index)>& after_layer) const {
  if (first_layer >= spec_.layers.size() || sequence_lengths.empty()) return;
  for (size_t s = 0; s < sequence_lengths.size(); ++s) CheckLength(spec_, s, sequence_lengths[s]);
  const int64_t num_tokens =
      std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0});
  int64_t longest = 0;
  for (const at::Tensor& hidden : streams.subspan(1)) longest = std::max(longest, hidden.size(0));
  const int64_t lead_tokens = longest == 0 ? 0 : num_tokens - longest;  // only in the first stream
  std::set<int64_t> cuts = {lead_tokens, num_tokens};  // starts and ends of streams
  for (const at::Tensor& hidden : streams) {
    if (&hidden == &streams[0]) {
      OSCAR_CHECK_EQ(hidden.size(0), num_tokens);
    } else {
      cuts.insert(lead_tokens + hidden.size(0));
    }
    OSCAR_CHECK_EQ(hidden.size(1), spec_.hidden_size);
    OSCAR_CHECK(hidden.device() == device_ && hidden.scalar_type() == dtype_ &&
                hidden.is_contiguous());
  }
  const std::vector<Span> spans = MakeSpansBetween(sequence_lengths, cuts, options_.token_chunk);

  LayerPass pass(*this, streams, sequence_lengths, lead_tokens, first_layer, observer);
  const WeightStreamOptions stream_options{.first_layer = first_layer,
                                           .last_attention_only = !options_.need_final_hidden,
                                           .shared_queries = options_.shared_queries,
                                           .prefetch = options_.prefetch,
                                           .read = options_.read,
                                           .expert_bytes = options_.expert_bytes,
                                           .group = options_.ranks};
  WeightStream stream(checkpoint_, spec_, {device_, dtype_}, stream_options);
  const std::vector<const LayerSpec*> layers = LayersToRun(spec_, stream_options);
  const auto wait = [&](std::string_view what, const auto& function) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = function();
    observer.OnWait(
        what, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return result;
  };
  size_t index = first_layer;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string layer = fmt::format("layer {}", layers[i]->layer_id);
    LayerWeights weights = wait("weights awaited", [&] {
      return WithErrorContext("loading " + layer, [&] { return stream.Next(); });
    });
    std::function<void()> check_same;
    if (options_.ranks->size() > 1) {
      check_same =
          CompareWeights(*options_.ranks, *layers[i], std::exchange(weights.loaded, {}), device_);
    }
    WithErrorContext("running " + layer,
                     [&] { pass.RunLayer(*layers[i], index, std::move(weights), stream, spans); });
    if (check_same) {  // must precede storing results of this layer
      wait("ranks awaited", [&] {
        check_same();
        return true;
      });
    }
    const bool step_done =
        i + 1 == layers.size() ||
        (layers[i + 1]->has_cache() && layers[i + 1]->layer_id > spec_.layers[index].layer_id);
    if (!step_done) continue;
    if (i + 1 == layers.size()) observer.OnWeightsRead(stream.bytes_read());
    if (!WithErrorContext("keeping " + layer, [&] { return after_layer(index); })) return;
    ++index;
  }
}

at::Tensor LayerLoop::Logits(const at::Tensor& hidden) const {
  return OutputHead(checkpoint_, spec_, {device_, dtype_}).Logits(hidden);
}

}  // namespace oscar
