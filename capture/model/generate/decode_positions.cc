// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/generate/decode_positions.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "capture/model/run/token_layout.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Copies into the memory of `to` if the shape is the same, because recorded work reads that memory.
void Assign(const at::Tensor& from, at::Tensor& to) {
  if (to.defined() && to.sizes() == from.sizes()) {
    to.copy_(from);
  } else {
    to = from;
  }
}

void OnDevice(std::vector<int64_t>& values, at::Device device, at::Tensor& to) {
  const at::Tensor host = at::from_blob(values.data(), {std::ssize(values)}, at::kLong);
  Assign(host.clone().to(device), to);
}

}  // namespace

bool TurnsEarlierTokens(const ModelSpec& spec, int64_t length) {
  return length > 1 && std::ranges::any_of(AllLayers(spec), [&](const LayerSpec* layer) {
           const RopeSpec& rope = layer->attention.rope;
           return LengthClass(rope, length) != LengthClass(rope, length - 1);
         });
}

DecodePositions::DecodePositions(const ModelSpec& spec, int64_t capacity,
                                 const WeightTarget& target)
    : capacity_(capacity), target_(target) {
  for (const LayerSpec* layer : AllLayers(spec)) {
    const RopeSpec& rope = layer->attention.rope;
    const bool known = std::ranges::any_of(ropes_, [&](const Rope& r) { return r.spec == rope; });
    if (NumPairs(rope) > 0 && !known) ropes_.push_back({rope, {}, {}});
  }
}

void DecodePositions::Set(const std::vector<int64_t>& first, const std::vector<int64_t>& lengths) {
  std::vector<int64_t> positions, slots, ends = lengths;
  for (size_t s = 0; s < lengths.size(); ++s) {
    OSCAR_CHECK(first[s] < lengths[s] && lengths[s] <= capacity_);
    for (int64_t position = first[s]; position < lengths[s]; ++position) {
      positions.push_back(position);
      slots.push_back(static_cast<int64_t>(s) * capacity_ + position);
    }
  }
  OnDevice(positions, target_.device, positions_);
  OnDevice(slots, target_.device, slots_);
  OnDevice(ends, target_.device, lengths_);
  for (Rope& rope : ropes_) SetRows(rope, first, lengths);
}

void DecodePositions::SetRows(Rope& rope, const std::vector<int64_t>& first,
                              const std::vector<int64_t>& lengths) {
  std::map<int64_t, RopeRows> tables;  // drops tables of other lengths
  for (const int64_t length : lengths) {
    const int64_t length_class = LengthClass(rope.spec, length);
    if (tables.contains(length_class)) continue;
    const auto known = rope.tables.find(length_class);
    tables[length_class] = known != rope.tables.end()
                               ? known->second
                               : MakeRopeTable(rope.spec, capacity_, target_, length);
  }
  rope.tables = std::move(tables);
  std::vector<at::Tensor> cos, sin;
  const auto take = [&](int64_t length_class, const at::Tensor& positions) {
    const RopeRows& table = rope.tables.at(length_class);
    cos.push_back(at::index_select(table.cos, 0, positions));
    sin.push_back(at::index_select(table.sin, 0, positions));
  };
  if (rope.tables.size() == 1) {
    take(rope.tables.begin()->first, positions_);
  } else {
    int64_t row = 0;
    for (size_t s = 0; s < lengths.size(); ++s) {
      const int64_t count = lengths[s] - first[s];
      take(LengthClass(rope.spec, lengths[s]), positions_.narrow(0, row, count));
      row += count;
    }
  }
  Assign(at::cat(cos), rope.rows.cos);
  Assign(at::cat(sin), rope.rows.sin);
  rope.rows.layout = rope.spec.layout;
}

RopeRows DecodePositions::Rows(const AttentionSpec& attention, int64_t first_row,
                               int64_t num_rows) const {
  RopeRows rows;
  if (NumPairs(attention.rope) > 0) {
    const auto rope = std::ranges::find(ropes_, attention.rope, &Rope::spec);
    OSCAR_CHECK(rope != ropes_.end());
    rows = {rope->rows.cos.narrow(0, first_row, num_rows),
            rope->rows.sin.narrow(0, first_row, num_rows), rope->rows.layout};
  }
  if (attention.position_beta != 0)
    rows.q_scale = QueryScale(attention, positions_.narrow(0, first_row, num_rows));
  return rows;
}

}  // namespace oscar
