// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The operators of liboscar_torch.so: their schemas, and their implementations for the host and for
// tensors without data (meta). README.md documents them. Trap: LibTorch promises no stable binary
// interface. So every operator refuses to run with another version than that of the build.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>  // aoti_torch_abi_version
#include <torch/headeronly/version.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "export/torch/host_write.h"
#include "export/torch/view_tensors.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

SideTensors SideOf(const OptionalTensor& rotation, const OptionalTensor& mean,
                   at::ArrayRef<double> clip, int64_t scales, const OptionalTensor& feedback,
                   const OptionalTensor& feedback_units) {
  if (scales < 0 || scales > static_cast<int64_t>(ScaleFit::kUnbiasedRounded))
    throw UsageError(fmt::format(
        "scales is {}; supported: 0 (of the range), 1 (unbiased) and 2 (unbiased, rounded)",
        scales));
  return {rotation.value_or(at::Tensor()),
          mean.value_or(at::Tensor()),
          clip.vec(),
          static_cast<ScaleFit>(scales),
          feedback.value_or(at::Tensor()),
          feedback_units.value_or(at::Tensor())};
}

// Converts rows [rows, heads, dim] to bf16.
at::Tensor Bf16Rows(const at::Tensor& rows, int64_t dim, const char* name) {
  if (rows.dim() != 3 || rows.size(2) != dim)
    throw UsageError(fmt::format("{} has shape {}; expected rows x heads x {}", name,
                                 fmt::join(rows.sizes(), " x "), dim));
  return rows.to(at::kBFloat16).contiguous();
}

const BFloat16Bits* Bits(const at::Tensor& tensor) {
  return static_cast<const BFloat16Bits*>(tensor.const_data_ptr());
}

std::tuple<at::Tensor, at::Tensor> MakeCache(at::IntArrayRef format, int64_t num_kv_heads,
                                             int64_t num_pages, int64_t num_windows,
                                             at::Device device) {
  const CacheShape shape = CacheShapeOf({format.data(), format.size()});
  if (num_kv_heads < 1 || num_pages < 0 || num_windows < 1)
    throw UsageError(
        fmt::format("the cache has {} heads, {} pages and {} windows; expected at least 1 head and "
                    "1 window, and no negative number of pages",
                    num_kv_heads, num_pages, num_windows));
  const at::TensorOptions options = at::TensorOptions().device(device);
  return {at::zeros({num_pages, PageBytes(shape.format, static_cast<int>(num_kv_heads))},
                    options.dtype(at::kByte)),
          at::zeros({num_windows, num_kv_heads, shape.window_head_values()},
                    options.dtype(at::kBFloat16))};
}

// Works on any device; the host does not read the data.
void Advance(const at::Tensor& state, const at::Tensor& new_rows, at::IntArrayRef format) {
  const CacheShape shape = CacheShapeOf({format.data(), format.size()});
  state.slice(0, 2, 4).copy_(state.slice(0, 0, 2));
  state.select(0, 0).add_(new_rows);
  const at::Tensor left = state.select(0, 0).sub(shape.sink_tokens + shape.recent_tokens);
  state.select(0, 1).copy_(left.clamp_min_(0).div_(shape.step, "floor").mul_(shape.step));
}

std::tuple<at::Tensor, at::Tensor> Write(
    const at::Tensor& pages, const at::Tensor& windows, const at::Tensor& bad_rows,
    const at::Tensor& state, const at::Tensor& page_table, const at::Tensor& window_of_request,
    at::IntArrayRef format, const OptionalTensor& heads, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& row_begin, int64_t max_rows, int64_t tail_rows,
    const OptionalTensor& k_rotation, const OptionalTensor& k_mean, at::ArrayRef<double> k_clip,
    int64_t k_scales, const OptionalTensor& k_feedback, const OptionalTensor& k_feedback_units,
    const OptionalTensor& v_rotation, const OptionalTensor& v_mean, at::ArrayRef<double> v_clip,
    int64_t v_scales, const OptionalTensor& v_feedback, const OptionalTensor& v_feedback_units) {
  const ViewTensors view =
      MakeView(pages, windows, state, page_table, window_of_request, format, heads);
  const WriteTensors write{
      .sides = {SideOf(k_rotation, k_mean, k_clip, k_scales, k_feedback, k_feedback_units),
                SideOf(v_rotation, v_mean, v_clip, v_scales, v_feedback, v_feedback_units)},
      .rows = {Bf16Rows(k, view.shape.format.k.dim, "k"),
               Bf16Rows(v, view.shape.format.v.dim, "v")},
      .row_begin = row_begin,
      .bad_rows = bad_rows,
      .max_rows = max_rows,
      .tail_rows = tail_rows};
  CheckWrite(view, write);
#ifdef OSCAR_TORCH_CUDA
  const RowTensors tail = pages.is_cpu() ? WriteOnHost(view, write) : WriteOnCuda(view, write);
#else
  const RowTensors tail = WriteOnHost(view, write);
#endif
  return {tail.k, tail.v};
}

void Attend(const at::Tensor& out, const at::Tensor& q, const at::Tensor& pages,
            const at::Tensor& windows, const at::Tensor& state, const at::Tensor& page_table,
            const at::Tensor& window_of_request, at::IntArrayRef format,
            const OptionalTensor& heads, const at::Tensor& row_begin, int64_t max_rows,
            int64_t max_length, int64_t gqa_ratio, double scale, double softcap, int64_t window,
            const OptionalTensor& sinks, bool exact_chunk, const OptionalTensor& tail_k,
            const OptionalTensor& tail_v) {
  const ViewTensors view =
      MakeView(pages, windows, state, page_table, window_of_request, format, heads);
  const AttendTensors attend{
      .q = Bf16Rows(q, view.shape.format.k.dim, "q"),
      .out = out,
      .row_begin = row_begin,
      .gqa_ratio = gqa_ratio,
      .sinks = sinks.value_or(at::Tensor()),
      .tail = {tail_k.value_or(at::Tensor()), tail_v.value_or(at::Tensor())}};
  CheckAttend(view, attend, max_rows, max_length);
  const AttendRule rule{static_cast<float>(scale), static_cast<float>(softcap), window,
                        exact_chunk};
#ifdef OSCAR_TORCH_CUDA
  if (!pages.is_cpu()) return AttendOnCuda(view, rule, attend, max_rows, max_length);
#endif
  AttendOnHost(view, rule, attend, max_rows);
}

std::tuple<at::Tensor, at::Tensor> Read(const at::Tensor& pages, const at::Tensor& windows,
                                        const at::Tensor& state, const at::Tensor& page_table,
                                        const at::Tensor& window_of_request, at::IntArrayRef format,
                                        const OptionalTensor& heads, int64_t num_kv_heads,
                                        int64_t max_length) {
  const ViewTensors view =
      MakeView(pages, windows, state, page_table, window_of_request, format, heads);
  CheckHeads(view, num_kv_heads);
  if (pages.is_cpu()) CheckRequests(HostCacheOf(view), nullptr, 0, /*appended=*/false);
  const RowTensors rows = ReadRows(view, num_kv_heads, max_length);
  return {rows.k, rows.v};
}

// Sums in float32, in the order that the device's library uses.
at::Tensor MultiplyByTensors(const at::Tensor& x, const at::Tensor& rotation, bool transposed) {
  const int64_t heads = x.size(1), dim = x.size(2), count = rotation.size(0);
  const at::ScalarType type = transposed ? at::kFloat : at::kBFloat16;
  const at::Tensor rows =
      x.to(type).reshape({-1, count, heads / count, dim}).transpose(0, 1).reshape({count, -1, dim});
  const at::Tensor matrices = rotation.to(at::kBFloat16).to(type);
  return at::bmm(rows, transposed ? matrices.transpose(1, 2) : matrices)
      .view({count, -1, heads / count, dim})
      .transpose(0, 1)
      .reshape(x.sizes())
      .to(transposed ? x.scalar_type() : at::kBFloat16);
}

at::Tensor Multiply(const at::Tensor& x, const at::Tensor& rotation, bool transposed) {
  if (x.dim() != 3 || rotation.dim() != 3 || rotation.size(1) != x.size(2) ||
      rotation.size(2) != x.size(2) || rotation.size(0) == 0 || x.size(1) % rotation.size(0) != 0)
    throw UsageError(
        fmt::format("rows of shape {} by matrices of shape {}; expected rows x heads x dim by "
                    "matrices x dim x dim, where the number of matrices divides the heads",
                    fmt::join(x.sizes(), " x "), fmt::join(rotation.sizes(), " x ")));
  if (!x.is_cpu()) return MultiplyByTensors(x, rotation, transposed);
  const at::Tensor rows = (transposed ? x : x.to(at::kBFloat16)).to(at::kFloat).contiguous();
  const at::Tensor matrices = rotation.to(at::kBFloat16).contiguous();
  const at::Tensor y = at::empty_like(rows);
  HostMultiply({.x = rows.const_data_ptr<float>(),
                .y = y.mutable_data_ptr<float>(),
                .rows = rows.size(0),
                .heads = rows.size(1),
                .dim = rows.size(2),
                .matrices = Bits(matrices),
                .num_matrices = matrices.size(0),
                .transposed = transposed},
               at::get_num_threads());
  return y.to(transposed ? x.scalar_type() : at::kBFloat16);
}

at::Tensor RotateQueries(const at::Tensor& x, const at::Tensor& rotation) {
  return Multiply(x, rotation, false);
}
at::Tensor RotateOutputs(const at::Tensor& x, const at::Tensor& rotation) {
  return Multiply(x, rotation, true);
}
// The functions below compute the shapes of results for tensors without data. Their arguments have
// the order of the schemas.
using Stack = torch::jit::Stack;

std::vector<c10::IValue> Arguments(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  std::vector<c10::IValue> arguments(stack->end() - static_cast<std::ptrdiff_t>(count),
                                     stack->end());
  torch::jit::drop(*stack, count);
  return arguments;
}

CacheShape ShapeOf(const c10::IValue& format) {
  const std::vector<int64_t> numbers = format.toIntVector();
  return CacheShapeOf(numbers);
}

void WriteMeta(const c10::OperatorHandle& op, Stack* stack) {
  const std::vector<c10::IValue> in = Arguments(op, stack);
  const at::Tensor &windows = in[1].toTensor(), &state = in[3].toTensor();
  const CacheShape shape = ShapeOf(in[6]);
  const c10::SymInt tail_rows = in[12].toSymInt();
  const c10::SymInt slots = tail_rows > 0 ? tail_rows + shape.recent_slots : tail_rows;
  for (const int dim : {shape.format.k.dim, shape.format.v.dim})
    stack->emplace_back(
        at::empty_symint({state.sym_size(1), windows.sym_size(1), slots, dim}, windows.options()));
}

void AttendMeta(const c10::OperatorHandle& op, Stack* stack) { Arguments(op, stack); }

void ReadMeta(const c10::OperatorHandle& op, Stack* stack) {
  const std::vector<c10::IValue> in = Arguments(op, stack);
  const CacheShape shape = ShapeOf(in[5]);
  for (const int dim : {shape.format.k.dim, shape.format.v.dim})
    stack->emplace_back(
        at::empty_symint({in[2].toTensor().sym_size(1), in[7].toSymInt(), in[8].toSymInt(), dim},
                         in[1].toTensor().options().dtype(at::kFloat)));
}

at::Tensor RotateQueriesMeta(const at::Tensor& x, const at::Tensor&) {
  return at::empty_symint(x.sym_sizes(), x.options().dtype(at::kBFloat16));
}
at::Tensor RotateOutputsMeta(const at::Tensor& x, const at::Tensor&) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

// Compares major and minor version of the loaded LibTorch with those of the build.
bool IsOfThisTorch() {
  const uint64_t version = aoti_torch_abi_version();
  return version >> 56 == TORCH_VERSION_MAJOR && (version >> 48 & 0xFF) == TORCH_VERSION_MINOR;
}

void Refuse(const c10::OperatorHandle& op, Stack*) {
  const uint64_t version = aoti_torch_abi_version();
  throw UsageError(
      fmt::format("{}: liboscar_torch.so was built for torch {}.{}, but this is torch {}.{}; build "
                  "it again with this version, or install that one",
                  op.schema().name(), TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, version >> 56,
                  version >> 48 & 0xFF));
}

}  // namespace
}  // namespace oscar

TORCH_LIBRARY(oscar, m) {
  m.def(
      "make_cache(int[] format, int num_kv_heads, int num_pages, int num_windows, Device device) "
      "-> (Tensor pages, Tensor windows)");
  m.def("advance(Tensor(a!) state, Tensor new_rows, int[] format) -> ()");
  m.def(
      "write(Tensor(a!) pages, Tensor(b!) windows, Tensor(c!) bad_rows, Tensor state, "
      "Tensor page_table, Tensor window_of_request, int[] format, Tensor? heads, Tensor k, "
      "Tensor v, Tensor row_begin, SymInt max_rows, SymInt tail_rows, Tensor? k_rotation, "
      "Tensor? k_mean, float[] k_clip, int k_scales, Tensor? k_feedback, Tensor? k_feedback_units, "
      "Tensor? v_rotation, Tensor? v_mean, float[] v_clip, int v_scales, Tensor? v_feedback, "
      "Tensor? v_feedback_units) -> (Tensor tail_k, Tensor tail_v)");
  m.def(
      "attend(Tensor(a!) out, Tensor q, Tensor pages, Tensor windows, Tensor state, "
      "Tensor page_table, Tensor window_of_request, int[] format, Tensor? heads, Tensor row_begin, "
      "SymInt max_rows, SymInt max_length, int gqa_ratio, float scale, float softcap, int window, "
      "Tensor? sinks, bool exact_chunk, Tensor? tail_k, Tensor? tail_v) -> ()");
  m.def(
      "read(Tensor pages, Tensor windows, Tensor state, Tensor page_table, "
      "Tensor window_of_request, int[] format, Tensor? heads, int num_kv_heads, SymInt max_length) "
      "-> (Tensor k, Tensor v)");
  m.def("rotate_queries(Tensor x, Tensor rotation) -> Tensor");
  m.def("rotate_outputs(Tensor x, Tensor rotation) -> Tensor");
}

TORCH_LIBRARY_IMPL(oscar, CompositeExplicitAutograd, m) {
  if (!oscar::IsOfThisTorch()) {
    for (const char* op :
         {"make_cache", "advance", "write", "attend", "read", "rotate_queries", "rotate_outputs"})
      m.impl(op, torch::CppFunction::makeFromBoxedFunction<&oscar::Refuse>());
    return;
  }
  m.impl("make_cache", oscar::MakeCache);
  m.impl("advance", oscar::Advance);
}

namespace {

void ImplementOnDevice(torch::Library& m) {
  if (!oscar::IsOfThisTorch()) return;
  m.impl("write", oscar::Write);
  m.impl("attend", oscar::Attend);
  m.impl("read", oscar::Read);
  m.impl("rotate_queries", oscar::RotateQueries);
  m.impl("rotate_outputs", oscar::RotateOutputs);
}

}  // namespace

TORCH_LIBRARY_IMPL(oscar, CPU, m) { ImplementOnDevice(m); }
#ifdef OSCAR_TORCH_CUDA
TORCH_LIBRARY_IMPL(oscar, CUDA, m) { ImplementOnDevice(m); }
#endif

TORCH_LIBRARY_IMPL(oscar, Meta, m) {
  m.impl("write", torch::CppFunction::makeFromBoxedFunction<&oscar::WriteMeta>());
  m.impl("attend", torch::CppFunction::makeFromBoxedFunction<&oscar::AttendMeta>());
  m.impl("read", torch::CppFunction::makeFromBoxedFunction<&oscar::ReadMeta>());
  m.impl("rotate_queries", oscar::RotateQueriesMeta);
  m.impl("rotate_outputs", oscar::RotateOutputsMeta);
}
