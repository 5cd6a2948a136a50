// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/layer_exchange.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calib/run/layer_parts.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int64_t kHiddenBytes = 256LL << 20;  // on their way at a time

}  // namespace

std::function<LayerOnDevice()> LayerExchange::Gather(size_t layer_index, LayerOnDevice own) const {
  const int owner = OwnerOf(layer_index), ranks = group().size();
  if (group().rank() != owner) {
    std::vector<at::Tensor> bytes;
    for (const auto& [name, tensor] : TensorsOf(own)) bytes.push_back(BytesOf(tensor));
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
    part.layer =
        EmptyPart(input_, split_, layer_index, input_.ranks.shares[static_cast<size_t>(rank)]);
    int64_t bytes = 0;
    for (const auto& [name, tensor] : TensorsOf(part.layer))
      bytes += static_cast<int64_t>(tensor.nbytes());
    part.bytes = at::empty({bytes}, own.layer.keys.at(0).options().dtype(at::kByte));
    part.wait = group().Receive(part.bytes, rank);
  }
  parts[static_cast<size_t>(owner)].layer = std::move(own);
  return [this, parts = std::move(parts)]() mutable {
    std::vector<LayerOnDevice> layers;
    for (Part& part : parts) {
      if (part.wait) {
        part.wait();
        const at::Device device = part.bytes.device();
        if (!device.is_cpu())
          part.bytes.record_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
        int64_t begin = 0;
        for (const auto& [name, tensor] : TensorsOf(part.layer)) {
          const auto bytes = static_cast<int64_t>(tensor.nbytes());
          BytesOf(tensor).copy_(part.bytes.narrow(0, begin, bytes));
          begin += bytes;
        }
        part.bytes.reset();
      }
      layers.push_back(std::move(part.layer));
    }
    parts.clear();
    return Together(std::move(layers), input_.ranks.shares, split_);
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
