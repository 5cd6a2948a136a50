// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/token_layout.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <map>

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

std::vector<RowRange> ChunksOf(const std::vector<RowRange>& rows, int64_t token_chunk) {
  std::vector<RowRange> chunks;
  for (const RowRange& range : rows) {
    for (int64_t begin = 0; begin < range.count; begin += token_chunk)
      chunks.push_back({range.first + begin, std::min(token_chunk, range.count - begin)});
  }
  return chunks;
}

// Equals Ministral3's get_llama_4_attn_scale: float32, cast at the end.
at::Tensor QueryScale(const AttentionSpec& attention, const at::Tensor& positions) {
  const at::Tensor periods = positions.to(at::kFloat)
                                 .add(static_cast<double>(attention.position_offset))
                                 .div_(static_cast<double>(attention.position_period))
                                 .floor_();
  return periods.add_(1).log_().mul_(attention.position_beta).add_(1).view({-1, 1, 1});
}

RopePositions::RopePositions(const ModelSpec& spec, const std::vector<int64_t>& sequence_lengths,
                             const WeightTarget& target) {
  std::vector<int32_t> positions;
  for (const int64_t length : sequence_lengths) {
    for (int64_t i = 0; i < length; ++i) positions.push_back(static_cast<int32_t>(i));
  }
  const int64_t total = static_cast<int64_t>(positions.size());
  positions_ = at::from_blob(positions.data(), {total}, at::kInt).clone().to(target.device);
  for (const LayerSpec* layer : AllLayers(spec)) {
    const RopeSpec& rope = layer->attention.rope;
    const bool known =
        std::ranges::any_of(tables_, [&](const Table& table) { return table.rope == rope; });
    if (NumPairs(rope) > 0 && !known) tables_.push_back(MakeTable(rope, sequence_lengths, target));
  }
}

// Concatenates the tables of all length classes in use.
RopePositions::Table RopePositions::MakeTable(const RopeSpec& rope,
                                              const std::vector<int64_t>& sequence_lengths,
                                              const WeightTarget& target) const {
  std::map<int64_t, int64_t> longest;  // keyed by length class
  for (const int64_t length : sequence_lengths) {
    int64_t& of_class = longest[LengthClass(rope, length)];
    of_class = std::max(of_class, length);
  }
  std::map<int64_t, int32_t> first_row;
  std::vector<at::Tensor> cos, sin;
  int64_t rows = 0;
  for (const auto& [length_class, length] : longest) {
    first_row[length_class] = static_cast<int32_t>(rows);
    const RopeRows part = MakeRopeTable(rope, length, target, length);
    cos.push_back(part.cos);
    sin.push_back(part.sin);
    rows += length;
  }
  if (cos.size() == 1) return {rope, {cos[0], sin[0], rope.layout}, positions_};
  std::vector<int32_t> row_of;
  for (const int64_t length : sequence_lengths) {
    const int32_t first = first_row.at(LengthClass(rope, length));
    for (int64_t i = 0; i < length; ++i) row_of.push_back(first + static_cast<int32_t>(i));
  }
  const at::Tensor on_host =
      at::from_blob(row_of.data(), {static_cast<int64_t>(row_of.size())}, at::kInt);
  return {rope, {at::cat(cos), at::cat(sin), rope.layout}, on_host.clone().to(target.device)};
}

RopeRows RopePositions::Rows(const RopeSpec& rope, int64_t first_token, int64_t num_tokens) const {
  if (NumPairs(rope) == 0) return {};
  const auto table = std::ranges::find(tables_, rope, &Table::rope);
  const at::Tensor row_of = table->row_of.narrow(0, first_token, num_tokens);
  return {at::index_select(table->rows.cos, 0, row_of),
          at::index_select(table->rows.sin, 0, row_of), rope.layout};
}

RopeRows RopePositions::Rows(const AttentionSpec& attention, int64_t first_token,
                             int64_t num_tokens) const {
  RopeRows rows = Rows(attention.rope, first_token, num_tokens);
  if (attention.position_beta != 0)
    rows.q_scale = QueryScale(attention, positions_.narrow(0, first_token, num_tokens));
  return rows;
}

}  // namespace oscar
