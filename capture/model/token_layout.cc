// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/token_layout.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

namespace oscar {

std::vector<Span> MakeSpans(const std::vector<int64_t>& sequence_lengths, int64_t token_chunk) {
  std::vector<Span> spans;
  int64_t token = 0;
  for (size_t i = 0; i < sequence_lengths.size(); ++i) {
    if (spans.empty() || spans.back().num_tokens + sequence_lengths[i] > token_chunk)
      spans.push_back({i, 0, token, 0});
    spans.back().num_sequences += 1;
    spans.back().num_tokens += sequence_lengths[i];
    token += sequence_lengths[i];
  }
  return spans;
}

RopePositions::RopePositions(const ModelSpec& spec, const std::vector<int64_t>& sequence_lengths,
                             const WeightTarget& target) {
  std::vector<int32_t> positions;
  for (const int64_t length : sequence_lengths) {
    for (int64_t i = 0; i < length; ++i) positions.push_back(static_cast<int32_t>(i));
  }
  const int64_t total = static_cast<int64_t>(positions.size());
  positions_ = at::from_blob(positions.data(), {total}, at::kInt).clone().to(target.device);
  const int64_t longest = *std::ranges::max_element(sequence_lengths);
  for (const LayerSpec& layer : spec.layers) {
    const RopeSpec& rope = layer.attention.rope;
    const bool known =
        std::ranges::any_of(tables_, [&](const auto& entry) { return entry.first == rope; });
    if (!known) tables_.emplace_back(rope, MakeRopeTable(rope, longest, target));
  }
}

RopeRows RopePositions::Rows(const RopeSpec& rope, int64_t first_token, int64_t num_tokens) const {
  const auto table =
      std::ranges::find(tables_, rope, [](const auto& entry) { return entry.first; });
  const at::Tensor positions = positions_.narrow(0, first_token, num_tokens);
  return {at::index_select(table->second.cos, 0, positions),
          at::index_select(table->second.sin, 0, positions)};
}

}  // namespace oscar
