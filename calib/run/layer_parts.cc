// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/layer_parts.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "calib/search/refine_choice.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// The documents [first, end).
struct Documents {
  int64_t first = 0, end = 0;

  explicit Documents(const RankShare& share)
      : first(static_cast<int64_t>(share.first_sequence)),
        end(first + static_cast<int64_t>(share.num_sequences)) {}
};

// Returns undefined sums for these documents; `rows` tells how many rows each document adds.
template <typename Rows>
DocumentSums EmptySums(int64_t first, int64_t end, const Rows& rows, int64_t values,
                       const at::TensorOptions& options) {
  DocumentSums places;
  for (int64_t document = first; document < end; ++document) places.Add(document, {});
  DocumentSums sums;
  for (DocumentSums::Node node : places.nodes()) {
    const int64_t begin = node.index << node.level, stop = (node.index + 1) << node.level;
    for (int64_t document = begin; document < stop && !node.sum.defined(); ++document)
      if (rows(document) > 0) node.sum = at::empty({values}, options);
    sums.Add(node);
  }
  return sums;
}

template <typename T>
void Append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void Append(DocumentSums& all, const DocumentSums& more) {
  for (const DocumentSums::Node& node : more.nodes()) all.Add(node);
}

// Appends the sums of a part to those of earlier parts. `half` says where the half point is: before
// (-1), in (0) or after (1) the part's documents.
void Append(LayerSums& all, const LayerSums& more, int half) {
  Append(all.fit, more.fit);
  Append(all.held_out, more.held_out);
  if (half >= 0) Append(all.first_half, half == 0 ? more.first_half : more.fit);
}

// Returns the number of other layers that read this layer's keys and values.
int64_t ReadersOf(const CalibrationInput& input, const LayerSpec& layer) {
  const ModelSource* const model = input.model();
  OSCAR_CHECK(model != nullptr && model->loop().options().shared_queries);
  return std::ranges::count_if(model->loop().spec().uncached, [&](const LayerSpec& other) {
    return other.attention.shared_kv == layer.layer_id;
  });
}

}  // namespace

std::vector<NamedTensor> TensorsOf(const LayerOnDevice& part) {
  std::vector<NamedTensor> tensors;
  const auto add_sums = [&](const std::string& of, const LayerSums& sums) {
    for (const auto& [name, some] :
         {std::pair("fit", &sums.fit), std::pair("held_out", &sums.held_out),
          std::pair("first_half", &sums.first_half)}) {
      for (const auto& [level, index, sum] : some->nodes())
        if (sum.defined())
          tensors.push_back({fmt::format("{}{}.{}.{}", of, name, level, index), sum});
    }
  };
  add_sums("", part.sums);
  for (size_t i = 0; i < part.readers.size(); ++i)
    add_sums(fmt::format("reader.{}.", i), part.readers[i]);
  const ObservedLayer& rows = part.layer;
  for (const auto& [name, of_documents] :
       {std::pair("keys", &rows.keys), std::pair("values", &rows.values),
        std::pair("k_pe", &rows.k_pe), std::pair("last_queries", &rows.last_queries)}) {
    for (size_t i = 0; i < of_documents->size(); ++i)
      tensors.push_back({fmt::format("{}.{}", name, i), (*of_documents)[i]});
  }
  for (const HeldOutQueries& queries : rows.queries) {
    tensors.push_back({fmt::format("queries.{}", queries.sequence), queries.queries});
    if (queries.q_pe.defined())
      tensors.push_back({fmt::format("q_pe.{}", queries.sequence), queries.q_pe});
  }
  return tensors;
}

LayerOnDevice EmptyPart(const CalibrationInput& input, const HeldOutSplit& split,
                        size_t layer_index, const RankShare& share) {
  const LayerSpec& spec = input.source->layers()[layer_index];
  const AttentionSpec& a = spec.attention;
  const Documents documents(share);
  const HalfPoint half = HalfPointOf(split);
  const SumsLayout layout{a.num_kv_heads, a.head_dim, a.v_head_dim};
  const auto options = at::dtype(input.dtype).device(input.device);
  const auto fit_rows = [&](int64_t i) { return split.fit_rows[static_cast<size_t>(i)]; };
  const auto tokens_of = [&](int64_t i) { return input.lengths()[static_cast<size_t>(i)]; };
  const auto held_out_rows = [&](int64_t i) { return tokens_of(i) - fit_rows(i); };
  const auto empty_sums = [&](int64_t values) {
    const auto doubles = options.dtype(at::kDouble);
    LayerSums sums{EmptySums(documents.first, documents.end, fit_rows, values, doubles),
                   EmptySums(documents.first, documents.end, held_out_rows, values, doubles),
                   {}};
    if (half.document >= documents.first && half.document < documents.end)
      sums.first_half = EmptySums(documents.first, half.document + 1, fit_rows, values, doubles);
    return sums;
  };
  LayerOnDevice empty;
  empty.sums = empty_sums(layout.of_all());
  for (int64_t i = ReadersOf(input, spec); i > 0; --i)
    empty.readers.push_back(empty_sums(layout.of_queries()));
  for (int64_t i = documents.first; i < documents.end; ++i) {
    const int64_t tokens = tokens_of(i);
    const auto of_rows = [&](int64_t rows, int64_t heads, int64_t dim) {
      return at::empty({rows, heads, dim}, options);
    };
    ObservedLayer& layer = empty.layer;
    layer.keys.push_back(of_rows(tokens, a.num_kv_heads, a.head_dim));
    layer.values.push_back(of_rows(tokens, a.num_kv_heads, a.v_head_dim));
    if (a.latent) layer.k_pe.push_back(at::empty({tokens, a.latent->rope_dim}, options));
    if (const int64_t last = QueriesToRefine(input.options.automatic); last > 0)
      layer.last_queries.push_back(of_rows(std::min(tokens, last), a.num_q_heads, a.head_dim));
    if (split.NumKeptRows(static_cast<size_t>(i), tokens, 1) == 0) continue;
    const at::Tensor rows =
        KeptRows(split, static_cast<size_t>(i), tokens, input.options.error_rows, input.device);
    layer.queries.push_back(
        {i, rows, of_rows(rows.numel(), a.num_q_heads, a.head_dim),
         a.latent ? of_rows(rows.numel(), a.num_q_heads, a.latent->rope_dim) : at::Tensor()});
  }
  return empty;
}

uint64_t PartBytes(const CalibrationInput& input, const HeldOutSplit& split, size_t layer_index,
                   const RankShare& share) {
  const LayerSpec& spec = input.source->layers()[layer_index];
  const AttentionSpec& a = spec.attention;
  const Documents documents(share);
  const SumsLayout layout{a.num_kv_heads, a.head_dim, a.v_head_dim};
  DocumentSums places;
  int64_t rows = 0;  // query rows
  for (int64_t i = documents.first; i < documents.end; ++i) {
    places.Add(i, {});
    const int64_t tokens = input.lengths()[static_cast<size_t>(i)];
    rows += split.NumKeptRows(static_cast<size_t>(i), tokens, input.options.error_rows) +
            std::min(tokens, QueriesToRefine(input.options.automatic));
  }
  const int64_t position = a.latent ? a.latent->rope_dim : 0;
  const int64_t values =
      share.num_tokens * (a.num_kv_heads * (a.head_dim + a.v_head_dim) + position) +
      rows * a.num_q_heads * (a.head_dim + position);
  const int64_t sums = layout.of_all() + ReadersOf(input, spec) * layout.of_queries();
  // The factor 2 counts fitted and held-out sums.
  return static_cast<uint64_t>(values * static_cast<int64_t>(at::elementSize(input.dtype)) +
                               2 * 8 * std::ssize(places.nodes()) * sums);
}

LayerOnDevice Together(std::vector<LayerOnDevice> parts, const std::vector<RankShare>& shares,
                       const HeldOutSplit& split) {
  OSCAR_CHECK_EQ(parts.size(), shares.size());
  const HalfPoint half = HalfPointOf(split);
  LayerOnDevice all;
  for (size_t i = 0; i < parts.size(); ++i) {
    LayerOnDevice& part = parts[i];
    const Documents documents(shares[i]);
    const int where = half.document < documents.first ? -1 : half.document < documents.end ? 0 : 1;
    Append(all.sums, part.sums, where);
    all.readers.resize(part.readers.size());
    for (size_t r = 0; r < all.readers.size(); ++r) Append(all.readers[r], part.readers[r], where);
    ObservedLayer& rows = part.layer;
    Append(all.layer.keys, rows.keys);
    Append(all.layer.values, rows.values);
    Append(all.layer.k_pe, rows.k_pe);
    Append(all.layer.queries, rows.queries);
    Append(all.layer.last_queries, rows.last_queries);
    if (!all.layer.w_uv.defined()) all.layer.w_uv = rows.w_uv;
    part = {};
  }
  all.SetCounts(split, half);
  return all;
}

}  // namespace oscar
