// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <vector>

#include "export/torch/host_write.h"
#include "export/torch/view_tensors.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr const char* kSideNames[] = {"k", "v"};

// Checks an optional tensor of the keys or values: it must be undefined, or have the given type and
// shape. One matrix may serve all heads.
void CheckOfSide(const at::Tensor& t, const char* side, const char* name, at::ScalarType type,
                 std::vector<int64_t> shape, const at::Device& device, bool one_for_all = false) {
  if (!t.defined()) return;
  std::vector<int64_t> found = t.sizes().vec();
  if (one_for_all && !found.empty() && found[0] == 1) found[0] = shape[0];
  if (found == shape && t.scalar_type() == type && t.is_contiguous() && t.device() == device)
    return;
  throw UsageError(fmt::format(
      "{}_{}: {} of shape {} on {}{}; expected contiguous {} of shape {}", side, name,
      at::toString(t.scalar_type()), fmt::join(t.sizes(), " x "), t.device().str(),
      t.is_contiguous() ? "" : ", not contiguous", at::toString(type), fmt::join(shape, " x ")));
}

template <typename T>
const T* DataOf(const at::Tensor& t) {
  return t.defined() ? static_cast<const T*>(t.const_data_ptr()) : nullptr;
}

HostSide HostSideOf(const SideTensors& side) {
  return {.rotation = DataOf<BFloat16Bits>(side.rotation),
          .per_head = side.rotation.defined() && side.rotation.size(0) > 1,
          .mean = DataOf<float>(side.mean),
          .clip = side.clip,
          .scales = side.scales,
          .feedback = DataOf<int8_t>(side.feedback),
          .feedback_units = DataOf<float>(side.feedback_units)};
}

}  // namespace

void CheckWrite(const ViewTensors& view, const WriteTensors& write) {
  const int64_t heads = view.num_kv_heads();
  const at::Device device = view.pages.device();
  for (int s = 0; s < 2; ++s) {
    const SideTensors& side = write.sides[s];
    const int64_t dim = s == 0 ? view.shape.format.k.dim : view.shape.format.v.dim;
    const char* const name = kSideNames[s];
    CheckOfSide(side.rotation, name, "rotation", at::kBFloat16, {heads, dim, dim}, device, true);
    CheckOfSide(side.mean, name, "mean", at::kFloat, {heads, dim}, device);
    CheckOfSide(side.feedback, name, "feedback", at::kChar, {heads, dim, dim + 16}, device);
    CheckOfSide(side.feedback_units, name, "feedback_units", at::kFloat, {heads}, device);
    if (side.feedback.defined() != side.feedback_units.defined())
      throw UsageError(fmt::format(
          "{0}: error feedback needs {0}_feedback and {0}_feedback_units, found only {0}_{1}", name,
          side.feedback.defined() ? "feedback" : "feedback_units"));
    if (side.clip.size() > 1 && std::ssize(side.clip) != heads)
      throw UsageError(
          fmt::format("{}: {} clip ratios for {} heads; expected none, one, or one per head", name,
                      side.clip.size(), heads));
    if (write.rows[s].device() != device || write.rows[s].size(0) != write.rows[0].size(0) ||
        write.rows[s].size(1) != write.rows[0].size(1))
      throw UsageError(
          fmt::format("{} has shape {} on {}; expected the rows and heads of k, whose shape is {}, "
                      "and the device of the cache",
                      name, fmt::join(write.rows[s].sizes(), " x "), write.rows[s].device().str(),
                      fmt::join(write.rows[0].sizes(), " x ")));
  }
  CheckHeads(view, write.rows[0].size(1));
  CheckRowBegin(view, write.row_begin);
  if (write.bad_rows.scalar_type() != at::kInt || write.bad_rows.numel() != 1)
    throw UsageError("bad_rows must be a single int32");
  if (write.tail_rows != 0 && write.tail_rows < write.max_rows)
    throw UsageError(fmt::format(
        "tail_rows is {} for calls with up to {} rows per request; expected 0 or that many",
        write.tail_rows, write.max_rows));
}

RowTensors WriteOnHost(const ViewTensors& view, const WriteTensors& write) {
  const HostCache cache = HostCacheOf(view);
  const auto* const row_begin = write.row_begin.const_data_ptr<int32_t>();
  CheckRequests(cache, row_begin, write.rows[0].size(0), /*appended=*/true);
  for (int r = 0; r < cache.num_requests; ++r)
    if (row_begin[r + 1] - row_begin[r] > write.max_rows)
      throw UsageError(fmt::format("request {} has {} rows, more than max_rows {}", r,
                                   row_begin[r + 1] - row_begin[r], write.max_rows));
  const auto tail = [&](int64_t dim) {
    const int64_t slots = write.tail_rows > 0 ? write.tail_rows + view.shape.recent_slots : 0;
    return at::zeros({view.num_requests(), view.num_kv_heads(), slots, dim},
                     view.windows.options());
  };
  const RowTensors tails{tail(view.shape.format.k.dim), tail(view.shape.format.v.dim)};
  const HostRows rows{.k = DataOf<BFloat16Bits>(write.rows[0]),
                      .v = DataOf<BFloat16Bits>(write.rows[1]),
                      .layer_heads = write.rows[0].size(1),
                      .heads = DataOf<int64_t>(view.heads),
                      .row_begin = row_begin,
                      .tail_k = static_cast<BFloat16Bits*>(tails.k.mutable_data_ptr()),
                      .tail_v = static_cast<BFloat16Bits*>(tails.v.mutable_data_ptr()),
                      .tail_slots = tails.k.size(2)};
  const int64_t bad = HostWrite(cache, HostSideOf(write.sides[0]), HostSideOf(write.sides[1]), rows,
                                at::get_num_threads());
  if (bad > 0) write.bad_rows.add_(bad);
  return tails;
}

RowTensors WriteThroughHost(const ViewTensors& view, const WriteTensors& write) {
  const auto on_host = [](const at::Tensor& t) { return t.defined() ? t.cpu() : t; };
  ViewTensors host = view;
  host.state = view.state.cpu();
  host.page_table = view.page_table.cpu().clone();
  host.heads = on_host(view.heads);
  // Numbers the pages that change from 0, because only these are copied to the host.
  const HostCache numbers{.shape = view.shape,
                          .num_requests = static_cast<int>(view.num_requests()),
                          .state = host.state.const_data_ptr<int32_t>()};
  std::vector<int64_t> pages;
  for (int r = 0; r < numbers.num_requests; ++r) {
    const at::Tensor table = host.page_table[r];
    auto* const of_request = table.mutable_data_ptr<int32_t>();
    const std::vector<int32_t> before(of_request, of_request + table.numel());
    std::fill_n(of_request, table.numel(), 0);
    const int64_t begin = numbers.quantized_before(r), end = numbers.quantized(r);
    const int64_t page_tokens = view.shape.format.page_tokens;
    for (int64_t page = begin / page_tokens; begin < end && page * page_tokens < end; ++page) {
      if (page >= table.numel())
        throw UsageError(
            fmt::format("request {} needs page {}, but its table has {}", r, page, table.numel()));
      of_request[page] = static_cast<int32_t>(pages.size());
      pages.push_back(before[static_cast<size_t>(page)]);
    }
  }
  const at::Device device = view.pages.device();
  const bool changes = !pages.empty();
  if (!changes) pages.push_back(0);
  const at::Tensor index = at::tensor(pages, at::kLong).to(device);
  host.pages = view.pages.index_select(0, index).cpu();
  host.windows = view.windows.index_select(0, view.window_of_request).cpu();
  host.window_of_request = at::arange(view.num_requests(), at::kInt);
  WriteTensors on_cpu = write;
  for (int s = 0; s < 2; ++s) {
    SideTensors& side = on_cpu.sides[s];
    for (at::Tensor* t : {&side.rotation, &side.mean, &side.feedback, &side.feedback_units})
      *t = on_host(*t);
    on_cpu.rows[s] = write.rows[s].cpu();
  }
  on_cpu.row_begin = write.row_begin.cpu();
  on_cpu.bad_rows = write.bad_rows.cpu();
  const RowTensors tails = WriteOnHost(host, on_cpu);
  if (changes) view.pages.index_copy_(0, index, host.pages.to(device));
  view.windows.index_copy_(0, view.window_of_request.to(at::kLong), host.windows.to(device));
  write.bad_rows.copy_(on_cpu.bad_rows);
  return {tails.k.to(device), tails.v.to(device)};
}

}  // namespace oscar
