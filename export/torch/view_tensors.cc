// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/torch/view_tensors.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "export/torch/host_write.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

void CheckTensor(const at::Tensor& tensor, const char* name, at::ScalarType type, int64_t rank,
                 const at::Device& device) {
  if (tensor.scalar_type() == type && tensor.dim() == rank && tensor.is_contiguous() &&
      tensor.device() == device)
    return;
  throw UsageError(fmt::format(
      "{} is {} of {} dims on {}{}; expected contiguous {} of {} dims on {}", name,
      at::toString(tensor.scalar_type()), tensor.dim(), tensor.device().str(),
      tensor.is_contiguous() ? "" : ", not contiguous", at::toString(type), rank, device.str()));
}

// The range of positions [begin, end) that some queries see among tokens stored in the same way.
struct Span {
  int64_t begin, end;
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

}  // namespace

ViewTensors MakeView(const at::Tensor& pages, const at::Tensor& windows, const at::Tensor& state,
                     const at::Tensor& page_table, const at::Tensor& window_of_request,
                     at::IntArrayRef format, const std::optional<at::Tensor>& heads) {
  ViewTensors view{.shape = CacheShapeOf({format.data(), format.size()}),
                   .pages = pages,
                   .windows = windows,
                   .state = state,
                   .page_table = page_table,
                   .window_of_request = window_of_request,
                   .heads = heads.value_or(at::Tensor())};
  const at::Device device = pages.device();
  CheckTensor(pages, "pages", at::kByte, 2, device);
  CheckTensor(windows, "windows", at::kBFloat16, 3, device);
  CheckTensor(state, "state", at::kInt, 2, device);
  CheckTensor(page_table, "page_table", at::kInt, 2, device);
  CheckTensor(window_of_request, "window_of_request", at::kInt, 1, device);
  if (view.heads.defined()) CheckTensor(view.heads, "heads", at::kLong, 1, device);
  const int64_t num_heads = view.num_kv_heads(), requests = view.num_requests();
  const int64_t page_bytes = PageBytes(view.shape.format, static_cast<int>(num_heads));
  if (pages.size(1) != page_bytes || windows.size(2) != view.shape.window_head_values() ||
      state.size(0) != 4 || page_table.size(0) != requests ||
      window_of_request.size(0) != requests || requests < 1 ||
      (view.heads.defined() && view.heads.size(0) != num_heads))
    throw UsageError(fmt::format(
        "the cache has pages of {} bytes, windows of {} heads by {} values, a state of {} by {}, "
        "{} page tables, {} windows of requests and {} heads; the format needs pages of {} bytes, "
        "windows of {} values and a state of 4 by requests",
        pages.size(1), num_heads, windows.size(2), state.size(0), requests, page_table.size(0),
        window_of_request.size(0), view.heads.defined() ? view.heads.size(0) : num_heads,
        page_bytes, view.shape.window_head_values()));
  return view;
}

void CheckHeads(const ViewTensors& view, int64_t layer_heads) {
  const at::Tensor heads = view.heads.defined() && view.heads.is_cpu() ? view.heads : at::Tensor();
  const int64_t view_heads = view.num_kv_heads();
  bool fits = view.heads.defined() ? view_heads <= layer_heads : view_heads == layer_heads;
  for (int64_t i = 0; heads.defined() && i < view_heads; ++i) {
    const auto* const head = heads.const_data_ptr<int64_t>() + i;
    fits = fits && *head >= (i == 0 ? 0 : head[-1] + 1) && *head < layer_heads;
  }
  if (fits) return;
  throw UsageError(fmt::format(
      "the view has {} heads and the layer has {}; without `heads`, these numbers must be equal; "
      "with `heads`, it must list distinct heads of the layer in ascending order",
      view_heads, layer_heads));
}

void CheckRowBegin(const ViewTensors& view, const at::Tensor& row_begin) {
  CheckTensor(row_begin, "row_begin", at::kInt, 1, view.pages.device());
  if (row_begin.size(0) != view.num_requests() + 1)
    throw UsageError(
        fmt::format("row_begin has {} numbers for {} requests; expected one more than requests",
                    row_begin.size(0), view.num_requests()));
}

void CheckAttend(const ViewTensors& view, const AttendTensors& attend, int64_t max_rows,
                 int64_t max_length) {
  const at::Device device = view.pages.device();
  const int64_t gqa = attend.gqa_ratio, q_heads = attend.q.size(1), rows = attend.q.size(0);
  if (gqa < 1 || q_heads % gqa != 0)
    throw UsageError(fmt::format(
        "{} query heads with {} per KV head; the first number must be a multiple of the second",
        q_heads, gqa));
  CheckHeads(view, q_heads / gqa);
  const at::ScalarType type = attend.out.scalar_type();
  if (attend.out.dim() != 3 || attend.out.size(0) != rows || attend.out.size(1) != q_heads ||
      attend.out.size(2) != view.shape.format.v.dim || attend.out.device() != device ||
      (type != at::kFloat && type != at::kBFloat16))
    throw UsageError(fmt::format("out has shape {}, {}; expected {} x {} x {} of Float or BFloat16",
                                 fmt::join(attend.out.sizes(), " x "), at::toString(type), rows,
                                 q_heads, view.shape.format.v.dim));
  if (attend.sinks.defined()) {
    CheckTensor(attend.sinks, "sinks", at::kFloat, 1, device);
    if (attend.sinks.size(0) != q_heads)
      throw UsageError(
          fmt::format("{} attention sinks for {} query heads; expected one for each head",
                      attend.sinks.size(0), q_heads));
  }
  CheckRowBegin(view, attend.row_begin);
  if (max_length < 1)
    throw UsageError(fmt::format("max_length is {}, expected at least 1", max_length));
  const bool tails = attend.tail.k.defined() && attend.tail.v.defined();
  if (!tails && max_rows > 1)
    throw UsageError(fmt::format(
        "up to {} queries per request need tails; pass the tails that write returned", max_rows));
  if (!tails) return;
  CheckTensor(attend.tail.k, "tail_k", at::kBFloat16, 4, device);
  CheckTensor(attend.tail.v, "tail_v", at::kBFloat16, 4, device);
  const auto fits = [&](const at::Tensor& tail, int64_t dim) {
    return tail.size(0) == view.num_requests() && tail.size(1) == view.num_kv_heads() &&
           tail.size(2) == attend.tail.k.size(2) && tail.size(3) == dim &&
           (tail.size(2) == 0 ? max_rows <= 1 : tail.size(2) >= view.shape.recent_slots + max_rows);
  };
  if (!fits(attend.tail.k, view.shape.format.k.dim) ||
      !fits(attend.tail.v, view.shape.format.v.dim))
    throw UsageError(
        fmt::format("tails have shapes {} and {} for {} requests of up to {} rows; pass the tails "
                    "that write returned",
                    fmt::join(attend.tail.k.sizes(), " x "),
                    fmt::join(attend.tail.v.sizes(), " x "), view.num_requests(), max_rows));
}

HostCache HostCacheOf(const ViewTensors& view) {
  return {.shape = view.shape,
          .num_kv_heads = static_cast<int>(view.num_kv_heads()),
          .num_requests = static_cast<int>(view.num_requests()),
          .num_pages = view.pages.size(0),
          .num_windows = view.windows.size(0),
          .pages = view.pages.mutable_data_ptr<uint8_t>(),
          .windows = static_cast<BFloat16Bits*>(view.windows.mutable_data_ptr()),
          .page_table = view.page_table.const_data_ptr<int32_t>(),
          .page_table_stride = view.page_table.size(1),
          .window_of_request = view.window_of_request.const_data_ptr<int32_t>(),
          .state = view.state.const_data_ptr<int32_t>()};
}

RowTensors StoredRows(const ViewTensors& view, int request, int64_t begin, int64_t end) {
  const HostCache cache = HostCacheOf(view);
  const auto read = [&](bool values) {
    const int64_t dim = values ? view.shape.format.v.dim : view.shape.format.k.dim;
    const at::Tensor rows = at::empty({view.num_kv_heads(), end - begin, dim}, at::kFloat);
    HostReadPages(cache, request, values, begin, end, rows.mutable_data_ptr<float>(),
                  rows.stride(0), at::get_num_threads());
    return rows;
  };
  return {read(false), read(true)};
}

namespace {

RowTensors RowsOfPages(const ViewTensors& view, int request, int64_t begin, int64_t end,
                       at::ScalarType type) {
#ifdef OSCAR_TORCH_CUDA
  if (!view.pages.is_cpu()) return StoredRowsOnCuda(view, request, begin, end, type);
#endif
  const RowTensors rows = StoredRows(view, request, begin, end);
  return {rows.k.to(type), rows.v.to(type)};
}

}  // namespace

RowTensors WindowRows(const ViewTensors& view, int request, int64_t begin, int64_t end) {
  const CacheShape& shape = view.shape;
  const int64_t sink = shape.sink_tokens, slots = shape.window_slots();
  const at::Tensor window =
      view.windows.index_select(0, view.window_of_request.slice(0, request, request + 1))
          .select(0, 0);
  at::Tensor slot = at::arange(begin, end, at::TensorOptions(at::kLong).device(window.device()));
  if (begin >= sink) slot = slot.sub(sink).remainder_(shape.recent_slots).add_(sink);
  const auto side = [&](int64_t from, int64_t dim) {
    return window.slice(1, from, from + slots * dim)
        .unflatten(1, {slots, dim})
        .index_select(1, slot);
  };
  const int64_t k_dim = shape.format.k.dim, v_dim = shape.format.v.dim;
  return {side(0, k_dim), side(slots * k_dim, v_dim)};
}

RowTensors ReadRows(const ViewTensors& view, int64_t layer_heads, int64_t max_length) {
  const at::Tensor state = view.state.cpu();
  const auto* const lengths = state.const_data_ptr<int32_t>();
  const int64_t requests = view.num_requests(), sink = view.shape.sink_tokens;
  const auto all = [&](int64_t dim) {
    return at::zeros({requests, view.num_kv_heads(), max_length, dim},
                     view.windows.options().dtype(at::kFloat));
  };
  RowTensors rows{all(view.shape.format.k.dim), all(view.shape.format.v.dim)};
  for (int64_t r = 0; r < requests; ++r) {
    const int64_t length = lengths[r], stored_end = sink + lengths[requests + r];
    if (length > max_length)
      throw UsageError(
          fmt::format("request {} has {} tokens, more than max_length {}", r, length, max_length));
    const auto put = [&](int64_t begin, int64_t end, auto read) {
      if (begin >= end) return;
      const RowTensors part = read(begin, end);
      rows.k[r].slice(1, begin, end).copy_(part.k);
      rows.v[r].slice(1, begin, end).copy_(part.v);
    };
    const auto request = static_cast<int>(r);
    const auto exact = [&](int64_t begin, int64_t end) {
      return WindowRows(view, request, begin, end);
    };
    put(0, std::min(length, sink), exact);
    put(sink, stored_end, [&](int64_t begin, int64_t end) {
      return RowsOfPages(view, request, begin - sink, end - sink, at::kFloat);
    });
    put(stored_end, length, exact);
  }
  if (!view.heads.defined()) return rows;
  const auto of_layer = [&](const at::Tensor& of_view) {
    at::Tensor wide =
        at::zeros({requests, layer_heads, max_length, of_view.size(3)}, of_view.options());
    return wide.index_copy_(1, view.heads, of_view);
  };
  return {of_layer(rows.k), of_layer(rows.v)};
}

namespace {

// Turns off cuDNN's attention, which makes a plan for every number of keys. That takes the host
// milliseconds.
class WithoutCudnnAttention {
 public:
  WithoutCudnnAttention() { at::globalContext().setSDPUseCuDNN(false); }
  ~WithoutCudnnAttention() { at::globalContext().setSDPUseCuDNN(before_); }

 private:
  const bool before_ = at::globalContext().userEnabledCuDNNSDP();
};

// Computes attention of queries [heads, gqa_ratio, queries, dim] over k and v [heads, keys, dim]. A
// query sees the keys for which `visible` [queries, keys] is true.
at::Tensor Masked(const AttendRule& rule, const at::Tensor& q, const at::Tensor& k,
                  const at::Tensor& v, const at::Tensor& visible, const at::Tensor& sinks) {
  const auto of_queries = [&](const at::Tensor& rows) {
    return rows.unsqueeze(1).expand({q.size(0), q.size(1), rows.size(1), rows.size(2)});
  };
  if (rule.softcap == 0 && !sinks.defined())
    return at::scaled_dot_product_attention(q, of_queries(k), of_queries(v), visible, 0, false,
                                            rule.scale);
  at::Tensor logits = at::matmul(q, k.unsqueeze(1).transpose(-1, -2)).to(at::kFloat);
  logits.mul_(rule.scale);
  if (rule.softcap > 0) logits.div_(rule.softcap).tanh_().mul_(rule.softcap);
  logits.masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
  if (sinks.defined()) {
    const at::Tensor of_sinks =
        sinks.view({q.size(0), q.size(1), 1, 1}).expand({-1, -1, q.size(2), 1});
    logits = at::cat({logits, of_sinks}, -1);
  }
  const at::Tensor weights = logits.softmax(-1).slice(-1, 0, k.size(1));
  return at::matmul(weights.to(v.scalar_type()), v.unsqueeze(1));
}

}  // namespace

void AttendByRows(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend) {
  const WithoutCudnnAttention without;
  const int64_t num_queries = view.pages.is_cpu() ? 256 : 2048;  // queries at a time
  const at::Tensor state = view.state.cpu();
  const at::Tensor begins = attend.row_begin.cpu();
  const auto* const row_begin = begins.const_data_ptr<int32_t>();
  HostCache lengths{.shape = view.shape,
                    .num_requests = static_cast<int>(view.num_requests()),
                    .state = state.const_data_ptr<int32_t>()};
  const int64_t gqa = attend.gqa_ratio, sink = view.shape.sink_tokens;
  const at::ScalarType type = view.pages.is_cpu() ? at::kFloat : at::kBFloat16;
  const auto of_view = [&](const at::Tensor& t, int64_t dim) {  // query heads of the view's heads
    const at::Tensor by_head = t.unflatten(dim, {-1, gqa});
    return view.heads.defined() ? by_head.index_select(dim, view.heads) : by_head;
  };
  const at::Tensor sinks =
      attend.sinks.defined() ? of_view(attend.sinks, 0).contiguous() : at::Tensor();
  for (int r = 0; r < lengths.num_requests; ++r) {
    const int64_t row = row_begin[r], rows = row_begin[r + 1] - row;
    if (rows == 0) continue;
    const int64_t length = lengths.length(r), first_position = length - rows;
    const auto first_seen = [&](int64_t position) {
      return rule.window > 0 ? std::max<int64_t>(0, position + 1 - rule.window) : 0;
    };
    const Span stored{std::max(sink, first_seen(first_position)),
                      QuantizedEnd(lengths, rule, r, length - 1)};
    const auto typed = [&](const RowTensors& t) { return RowTensors{t.k.to(type), t.v.to(type)}; };
    const RowTensors codes =
        stored.size() == 0 ? RowTensors{}
                           : RowsOfPages(view, r, stored.begin - sink, stored.end - sink, type);
    const RowTensors sink_rows = typed(WindowRows(view, r, 0, std::min(sink, length)));
    // Without a tail, a request has one query, and the recent ring holds all recent rows that it
    // reads.
    const bool has_tail = attend.tail.k.defined() && attend.tail.k.size(2) > 0;
    const int64_t tail_begin =
        has_tail ? lengths.length_before(r) - view.shape.recent_slots : std::max(sink, stored.end);
    const RowTensors tail =
        typed(has_tail ? RowTensors{attend.tail.k[r], attend.tail.v[r]}
                       : WindowRows(view, r, tail_begin, std::max(tail_begin, length)));
    for (int64_t i = 0; i < rows; i += num_queries) {
      const int64_t count = std::min(num_queries, rows - i), position = first_position + i,
                    last = position + count - 1, seen = first_seen(position);
      std::vector<at::Tensor> k, v, visible;
      const at::TensorOptions whole = at::TensorOptions(at::kLong).device(view.pages.device());
      const at::Tensor positions = at::arange(position, last + 1, whole).unsqueeze(1);
      std::vector<int64_t> quantized;
      for (int64_t j = 0; j < count; ++j)
        quantized.push_back(QuantizedEnd(lengths, rule, r, position + j));
      const at::Tensor ends = at::tensor(quantized, at::kLong).to(whole.device()).unsqueeze(1);
      const auto add = [&](Span span, const RowTensors& from, int64_t begin, auto sees) {
        if (span.size() == 0) return;
        k.push_back(from.k.slice(1, span.begin - begin, span.end - begin));
        v.push_back(from.v.slice(1, span.begin - begin, span.end - begin));
        const at::Tensor t = at::arange(span.begin, span.end, whole);
        at::Tensor mask = sees(t).logical_and(t.le(positions));
        if (rule.window > 0) mask = mask.logical_and(t.gt(positions.sub(rule.window)));
        visible.push_back(mask);
      };
      add({std::max(sink, seen), QuantizedEnd(lengths, rule, r, last)}, codes, stored.begin,
          [&](const at::Tensor& t) { return t.lt(ends); });
      add({seen, std::min(sink, last + 1)}, sink_rows, 0,
          [&](const at::Tensor& t) { return t.lt(sink); });
      add({std::max({sink, seen, QuantizedEnd(lengths, rule, r, position)}), last + 1}, tail,
          tail_begin, [&](const at::Tensor& t) { return t.ge(ends); });
      const at::Tensor q =
          of_view(attend.q.slice(0, row + i, row + i + count), 1).permute({1, 2, 0, 3}).to(type);
      const at::Tensor out =
          Masked(rule, q, at::cat(k, 1), at::cat(v, 1), at::cat(visible, 1), sinks);
      const at::Tensor of_rows = out.permute({2, 0, 1, 3}).to(attend.out.scalar_type());
      at::Tensor to = attend.out.slice(0, row + i, row + i + count).unflatten(1, {-1, gqa});
      if (view.heads.defined()) {
        to.index_copy_(1, view.heads, of_rows.contiguous());
      } else {
        to.copy_(of_rows);
      }
    }
  }
}

void AttendOnHost(const ViewTensors& view, const AttendRule& rule, const AttendTensors& attend,
                  int64_t max_rows) {
  constexpr int64_t kFewRows = 4;  // up to this many rows of a request are handled one by one
  const HostCache cache = HostCacheOf(view);
  const auto* const row_begin = attend.row_begin.const_data_ptr<int32_t>();
  CheckRequests(cache, row_begin, attend.q.size(0), /*appended=*/false);
  for (int r = 0; r < cache.num_requests; ++r)
    if (row_begin[r + 1] - row_begin[r] > max_rows)
      throw UsageError(fmt::format("request {} has {} queries, more than max_rows {}", r,
                                   row_begin[r + 1] - row_begin[r], max_rows));
  if (max_rows > kFewRows) return AttendByRows(view, rule, attend);
  const at::Tensor& out = attend.out;
  const bool direct = out.scalar_type() == at::kFloat && out.is_contiguous();
  const at::Tensor result = direct ? out : out.to(at::kFloat).contiguous(),
                   queries = attend.q.to(at::kFloat);
  const auto bits = [](const at::Tensor& t) {
    return t.defined() ? static_cast<const BFloat16Bits*>(t.const_data_ptr()) : nullptr;
  };
  HostAttend(cache, rule,
             {.q = queries.const_data_ptr<float>(),
              .out = result.mutable_data_ptr<float>(),
              .num_q_heads = queries.size(1),
              .gqa_ratio = attend.gqa_ratio,
              .heads = view.heads.defined() ? view.heads.const_data_ptr<int64_t>() : nullptr,
              .row_begin = row_begin,
              .sinks = attend.sinks.defined() ? attend.sinks.const_data_ptr<float>() : nullptr,
              .tail_k = bits(attend.tail.k),
              .tail_v = bits(attend.tail.v),
              .tail_slots = attend.tail.k.defined() ? attend.tail.k.size(2) : 0},
             at::get_num_threads());
  if (!direct) out.copy_(result);
}

}  // namespace oscar
