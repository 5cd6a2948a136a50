// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/write/write_cache.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "export/cuda/write/rotate_rows.h"
#include "export/cuda/write/write_kernel.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The kernels divide by recent_slots, so it must not be 0.
void CheckWindows(const CacheView& view) {
  if (view.recent_slots > 0 && view.windows != nullptr) return;
  throw UsageError(
      fmt::format("write: found {} recent slots and windows {}; expected at least {} slots and a "
                  "device array, because new tokens are written there first",
                  view.recent_slots, view.windows == nullptr ? "null" : "given", kTileTokens));
}

// Finds z with P(|N(0, 1)| < z) = p, by bisection.
double HalfNormalQuantile(double p) {
  double low = 0;
  double high = 8;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return high;
}

// Returns the standard deviation of a row of `dim` Gaussian values, divided by the sum of its
// spreads. A spread is the largest minus the smallest value of one of eight pieces of the row. Uses
// Blom's estimate of the expected largest of n values (Statistical Estimates and Transformed
// Beta-Variables, 1958).
float GaussianSpreadShare(int dim) {
  const double n = dim / 8.0;
  const double largest = HalfNormalQuantile(2 * (n - 0.375) / (n + 0.25) - 1);
  return static_cast<float>(1 / (16 * largest));
}

void CheckFeedback(const WriteSide& write, std::string_view side) {
  if ((write.feedback == nullptr) == (write.feedback_units == nullptr) &&
      reinterpret_cast<uintptr_t>(write.feedback) % 16 == 0)
    return;
  throw UsageError(
      fmt::format("write: the error feedback of {} has columns {} and units {}; expected both, "
                  "with 16-byte aligned columns, or neither",
                  side, static_cast<const void*>(write.feedback),
                  static_cast<const void*>(write.feedback_units)));
}

SideArguments MakeSide(const CacheView& view, const WriteSide& write, const PagedSide& side,
                       const __nv_bfloat16* x, __nv_bfloat16* rotated, bool values) {
  SideArguments s;
  s.x = x;
  s.rotated = rotated;
  s.rotation = write.rotation;
  s.rotation_stride = write.per_head ? int64_t{side.dim} * side.dim : 0;
  s.side = side;
  s.clip_index = static_cast<int>(ClipIndex(write.clip_ratio, side.dim).value_or(-1));
  if (s.clip_index >= 0 || !write.head_clip_ratios.empty())
    s.spread_share = GaussianSpreadShare(side.dim);
  if (s.clip_index >= 0)
    s.clip_guess =
        s.spread_share * static_cast<float>(HalfNormalQuantile((s.clip_index + 0.5) / side.dim));
  s.scales = write.scales;
  if (const std::span<const double> ratios = write.head_clip_ratios; !ratios.empty()) {
    if (std::ssize(ratios) != view.num_kv_heads || view.num_kv_heads > kMaxClipHeads)
      throw UsageError(fmt::format(
          "write: {} clip ratios for {} KV heads; expected one each, for up to {} heads",
          ratios.size(), view.num_kv_heads, kMaxClipHeads));
    s.clip_of_head = true;
    for (size_t h = 0; h < ratios.size(); ++h)
      s.head_clip[h] = static_cast<int16_t>(ClipIndex(ratios[h], side.dim).value_or(-1));
  }
  s.transposed = values;
  s.codes_offset = values ? VCodesOffset(view.format) : KCodesOffset(view.format);
  s.metadata_offset = values ? VMetadataOffset(view.format) : KMetadataOffset(view.format);
  CheckFeedback(write, values ? "values" : "keys");
  s.feedback = write.feedback;
  s.feedback_units = write.feedback_units;
  return s;
}

WriteArguments MakeArguments(const CacheView& view, const WriteOptions& options,
                             const PrefillTokens& tokens) {
  CheckCacheView(view);
  CheckWindows(view);
  if (options.bad_rows == nullptr)
    throw UsageError(
        "write: bad_rows is null; give a device counter for rows that cannot be quantized");
  WriteArguments a;
  a.view = view;
  a.sides[0] = MakeSide(view, options.k, view.format.k, tokens.k, options.rotated_k, false);
  a.sides[1] = MakeSide(view, options.v, view.format.v, tokens.v, options.rotated_v, true);
  a.bisect = options.clip_method == ClipMethod::kBisect;
  a.overlap_previous = options.overlap_previous;
  a.bad_rows = options.bad_rows;
  const int64_t page_bytes = PageBytes(view.format, view.num_kv_heads);
  if (page_bytes > std::numeric_limits<int>::max())
    throw UsageError(
        fmt::format("write: a page has {} bytes; at most 2^31 - 1 are supported", page_bytes));
  a.page_bytes = static_cast<int>(page_bytes);
  a.head_bytes = a.page_bytes / view.num_kv_heads;
  a.record_bytes = RecordBytes(view.format);
  a.page_tokens_log2 = std::countr_zero(static_cast<unsigned>(view.format.page_tokens));
  return a;
}

}  // namespace

void WritePrefill(const CacheView& view, const WriteOptions& options, const PrefillTokens& tokens,
                  cudaStream_t stream) {
  WriteArguments a = MakeArguments(view, options, tokens);
  if (tokens.num_tokens < 0)
    throw UsageError(fmt::format("write: {} tokens; expected at least 0", tokens.num_tokens));
  if (tokens.num_tokens == 0) return;
  a.row_begin = tokens.row_begin;
  a.position_begin = tokens.position_begin;
  a.rows = tokens.num_tokens;
  a.tiles = tokens.num_tokens / kTileTokens + 2 * view.num_requests;
  LaunchWrite(a, stream);
}

void FlushWindows(const CacheView& view, const WriteOptions& options,
                  const int32_t* quantized_before, int max_tokens, cudaStream_t stream) {
  WriteOptions as_they_are = options;  // rows in the windows are already rotated
  as_they_are.k.rotation = as_they_are.v.rotation = nullptr;
  as_they_are.rotated_k = as_they_are.rotated_v = nullptr;
  WriteArguments a = MakeArguments(view, as_they_are, {});
  if (max_tokens < 1 || quantized_before == nullptr)
    throw UsageError(
        fmt::format("flush: at most {} tokens, quantized_before {}; expected a "
                    "positive count and a device array",
                    max_tokens, quantized_before == nullptr ? "null" : "given"));
  a.quantized_before = quantized_before;
  a.tiles = (max_tokens + 8 + kTileTokens - 1) / kTileTokens;
  LaunchWrite(a, stream);
}

void AppendTokens(const CacheView& view, const WriteOptions& options, const __nv_bfloat16* k,
                  const __nv_bfloat16* v, cudaStream_t stream) {
  CheckCacheView(view);
  CheckWindows(view);
  LaunchAppendTokens(view, options, k, v, stream);
}

void RotateRows(const RotateArguments& arguments, cudaStream_t stream) {
  const int dim = arguments.dim;
  if (dim < kMinCacheDim || dim > kMaxCacheDim || dim % 32 != 0)
    throw UsageError(fmt::format("rotate: head dim {}; supported: multiples of 32 from {} to {}",
                                 dim, kMinCacheDim, kMaxCacheDim));
  if (arguments.num_heads < 1 || arguments.num_matrices < 1 ||
      arguments.num_heads % arguments.num_matrices != 0)
    throw UsageError(fmt::format(
        "rotate: {} heads by {} matrices; the number of matrices must divide the number of heads",
        arguments.num_heads, arguments.num_matrices));
  if (arguments.rotation == nullptr) throw UsageError("rotate: the rotation is null");
  if (arguments.num_rows < 1) return;
  LaunchRotateRows(arguments, stream);
}

}  // namespace oscar
