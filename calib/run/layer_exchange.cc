// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/layer_exchange.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "calib/search/refine_choice.h"
#include "linalg/check.h"

namespace oscar {
namespace {

constexpr int64_t kHiddenBytes = 256LL << 20;  // on their way at a time

// Everything of a layer that differs between ranks, in a fixed order.
std::vector<at::Tensor> TensorsOf(const LayerOnDevice& layer) {
  std::vector<at::Tensor> tensors;
  const auto add_sums = [&](const LayerSums& sums) {
    for (const DocumentSums* part : {&sums.fit, &sums.held_out, &sums.first_half})
      for (const DocumentSums::Node& node : part->nodes())
        if (node.sum.defined()) tensors.push_back(node.sum);
  };
  add_sums(layer.sums);
  for (const LayerSums& reader : layer.readers) add_sums(reader);
  const ObservedLayer& rows = layer.layer;
  for (const auto* of_documents : {&rows.keys, &rows.values, &rows.k_pe, &rows.last_queries})
    tensors.insert(tensors.end(), of_documents->begin(), of_documents->end());
  for (const HeldOutQueries& queries : rows.queries) {
    tensors.push_back(queries.queries);
    if (queries.q_pe.defined()) tensors.push_back(queries.q_pe);
  }
  return tensors;
}

at::Tensor BytesOf(const at::Tensor& tensor) {
  return tensor.contiguous().view({-1}).view(at::kByte);
}

// Sums of documents [first, end), empty; `rows` has how many each adds up.
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

at::Tensor EmptyRows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, like.options());
}

template <typename T>
void Append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void Append(DocumentSums& all, const DocumentSums& more) {
  for (const DocumentSums::Node& node : more.nodes()) all.Add(node);
}

// What a rank has, behind those before it; `half`: whether the half point is in its documents (0),
// before (-1) or behind them (1).
void Append(LayerSums& all, const LayerSums& more, int half) {
  Append(all.fit, more.fit);
  Append(all.held_out, more.held_out);
  if (half >= 0) Append(all.first_half, half == 0 ? more.first_half : more.fit);
}

}  // namespace

LayerOnDevice LayerExchange::EmptyOf(const LayerSpec& spec, const LayerOnDevice& own,
                                     int rank) const {
  const RankShare& share = input_.ranks.shares[static_cast<size_t>(rank)];
  const auto first = static_cast<int64_t>(share.first_sequence),
             end = first + static_cast<int64_t>(share.num_sequences);
  const HalfPoint half = HalfPointOf(split_);
  const ObservedLayer& like = own.layer;
  const at::Tensor &k = like.keys.at(0), &v = like.values.at(0);
  const SumsLayout layout{k.size(1), k.size(2), v.size(2)};
  const auto options = k.options().dtype(at::kDouble);
  const auto fit_rows = [&](int64_t i) { return split_.fit_rows[static_cast<size_t>(i)]; };
  const auto tokens_of = [&](int64_t i) { return input_.ranks.lengths[static_cast<size_t>(i)]; };
  const auto held_out_rows = [&](int64_t i) { return tokens_of(i) - fit_rows(i); };
  const auto empty_sums = [&](int64_t values) {
    LayerSums sums{EmptySums(first, end, fit_rows, values, options),
                   EmptySums(first, end, held_out_rows, values, options),
                   {}};
    if (half.document >= first && half.document < end)
      sums.first_half = EmptySums(first, half.document + 1, fit_rows, values, options);
    return sums;
  };
  LayerOnDevice empty;
  empty.sums = empty_sums(layout.of_all());
  for (size_t i = 0; i < own.readers.size(); ++i)
    empty.readers.push_back(empty_sums(layout.of_queries()));
  const bool refines = input_.options.automatic.enabled && input_.options.automatic.refine > 0;
  for (int64_t i = first; i < end; ++i) {
    const int64_t tokens = tokens_of(i);
    ObservedLayer& layer = empty.layer;
    layer.keys.push_back(EmptyRows(k, tokens));
    layer.values.push_back(EmptyRows(v, tokens));
    if (!like.k_pe.empty()) layer.k_pe.push_back(EmptyRows(like.k_pe[0], tokens));
    if (refines) {
      layer.last_queries.push_back(
          EmptyRows(like.last_queries.at(0), std::min(tokens, kRefinedQueries)));
    }
    if (held_out_rows(i) == 0) continue;
    const at::Tensor rows = KeptRows(tokens, fit_rows(i), input_.options.error_rows, k.device());
    const auto of_rows = [&](int64_t dim) {
      return at::empty({rows.numel(), spec.attention.num_q_heads, dim}, k.options());
    };
    const auto& latent = spec.attention.latent;
    layer.queries.push_back(
        {i, rows, of_rows(k.size(2)), latent ? of_rows(latent->rope_dim) : at::Tensor()});
  }
  return empty;
}

std::function<LayerOnDevice()> LayerExchange::Gather(size_t layer_index, LayerOnDevice own) const {
  const int owner = OwnerOf(layer_index), ranks = group().size();
  if (group().rank() != owner) {
    std::vector<at::Tensor> bytes;
    for (const at::Tensor& tensor : TensorsOf(own)) bytes.push_back(BytesOf(tensor));
    group().Send(at::cat(bytes), owner);
    return {};
  }
  struct Part {
    LayerOnDevice layer;
    at::Tensor bytes;
    std::function<void()> wait;
  };
  std::vector<Part> parts(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == owner) continue;
    Part& part = parts[static_cast<size_t>(rank)];
    part.layer = EmptyOf(input_.source->layers()[layer_index], own, rank);
    int64_t bytes = 0;
    for (const at::Tensor& tensor : TensorsOf(part.layer))
      bytes += static_cast<int64_t>(tensor.nbytes());
    part.bytes = at::empty({bytes}, own.layer.keys.at(0).options().dtype(at::kByte));
    part.wait = group().Receive(part.bytes, rank);
  }
  parts[static_cast<size_t>(owner)].layer = std::move(own);
  return [this, parts = std::move(parts), owner]() mutable {
    const HalfPoint half = HalfPointOf(split_);
    LayerOnDevice all;
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      Part& part = parts[rank];
      if (part.wait) {
        part.wait();
        const at::Device device = part.bytes.device();
        if (!device.is_cpu())
          part.bytes.record_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
        int64_t begin = 0;
        for (const at::Tensor& tensor : TensorsOf(part.layer)) {
          const auto bytes = static_cast<int64_t>(tensor.nbytes());
          BytesOf(tensor).copy_(part.bytes.narrow(0, begin, bytes));
          begin += bytes;
        }
        part.bytes.reset();
      }
      const RankShare& share = input_.ranks.shares[rank];
      const auto first = static_cast<int64_t>(share.first_sequence);
      const int where = half.document < first                                               ? -1
                        : half.document < first + static_cast<int64_t>(share.num_sequences) ? 0
                                                                                            : 1;
      const bool known = half.document >= 0;
      Append(all.sums, part.layer.sums, known ? where : -1);
      all.readers.resize(part.layer.readers.size());
      for (size_t i = 0; i < all.readers.size(); ++i)
        Append(all.readers[i], part.layer.readers[i], known ? where : -1);
      ObservedLayer& rows = part.layer.layer;
      Append(all.layer.keys, rows.keys);
      Append(all.layer.values, rows.values);
      Append(all.layer.k_pe, rows.k_pe);
      Append(all.layer.queries, rows.queries);
      Append(all.layer.last_queries, rows.last_queries);
    }
    const LayerOnDevice& mine = parts[static_cast<size_t>(owner)].layer;
    all.layer.w_uv = mine.layer.w_uv;
    all.fit_tokens = mine.fit_tokens;
    all.held_out_tokens = mine.held_out_tokens;
    all.half_tokens = mine.half_tokens;
    parts.clear();
    return all;
  };
}

void LayerExchange::GatherHidden(const at::Tensor& own, const at::Tensor& all) const {
  const int64_t row_bytes = own.size(1) * static_cast<int64_t>(own.element_size());
  const int64_t step = std::max<int64_t>(1, kHiddenBytes / row_bytes);
  for (int rank = 0; rank < group().size(); ++rank) {
    const RankShare& share = input_.ranks.shares[static_cast<size_t>(rank)];
    for (int64_t row = 0; row < share.num_tokens; row += step) {
      const int64_t count = std::min(step, share.num_tokens - row);
      if (group().rank() == 0) {
        at::Tensor part =
            rank == 0 ? own.narrow(0, row, count) : at::empty({count, own.size(1)}, own.options());
        if (rank != 0) group().Receive(part, rank)();
        all.narrow(0, share.first_token + row, count).copy_(part, /*non_blocking=*/true);
      } else if (group().rank() == rank) {
        group().Send(own.narrow(0, row, count), 0);
      }
    }
  }
}

at::Tensor LayerExchange::ScatterHidden(const at::Tensor& all) const {
  const int64_t hidden_size = input_.model()->loop().spec().hidden_size;
  const auto options = at::dtype(input_.dtype).device(input_.device);
  const int64_t row_bytes = hidden_size * static_cast<int64_t>(at::elementSize(input_.dtype));
  const int64_t step = std::max<int64_t>(1, kHiddenBytes / row_bytes);
  const at::Tensor own = at::empty({input_.ranks.own().num_tokens, hidden_size}, options);
  for (int rank = 0; rank < group().size(); ++rank) {
    const RankShare& share = input_.ranks.shares[static_cast<size_t>(rank)];
    for (int64_t row = 0; row < share.num_tokens; row += step) {
      const int64_t count = std::min(step, share.num_tokens - row);
      if (group().rank() == 0) {
        const at::Tensor part = all.narrow(0, share.first_token + row, count).to(input_.device);
        if (rank != 0) group().Send(part, rank);
        if (rank == 0) own.narrow(0, row, count).copy_(part);
      } else if (group().rank() == rank) {
        group().Receive(own.narrow(0, row, count), 0)();
      }
    }
  }
  return own;
}

LayerExchange::Verdict LayerExchange::Agree(size_t layer_index, const Verdict& own) const {
  const std::string key = fmt::format("layer/{}", layer_index);
  if (group().rank() == 0) {
    const bool stop = own.stop || group().Has("stop");
    group().Set(key, fmt::format("{:d}{:d}", stop, own.commit));
    return {stop, own.commit};
  }
  if (own.stop) group().Set("stop", "1");
  const std::string said = group().Get(key);
  OSCAR_CHECK_EQ(said.size(), 2U);
  return {said[0] == '1', said[1] == '1'};
}

}  // namespace oscar
