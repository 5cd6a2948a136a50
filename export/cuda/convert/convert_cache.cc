// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/convert/convert_cache.h"

#include <fmt/format.h>

#include "export/cuda/convert/convert_kernel.h"
#include "linalg/error.h"

namespace oscar {
namespace {

ConvertArguments CheckedRange(const CacheView& view, int request, int64_t begin,
                              int64_t num_tokens) {
  CheckCacheView(view);
  const int64_t held = int64_t{view.page_table_stride} * view.format.page_tokens;
  if (request < 0 || request >= view.num_requests || begin < 0 || num_tokens < 0 ||
      begin + num_tokens > held)
    throw UsageError(
        fmt::format("convert: tokens {} to {} of request {}; the cache has {} requests "
                    "of up to {} quantized tokens",
                    begin, begin + num_tokens, request, view.num_requests, held));
  ConvertArguments a{};
  a.view = view;
  a.request = request;
  a.begin = begin;
  a.num_tokens = num_tokens;
  return a;
}

ConvertArguments TokenMajor(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                            const TokenMajorRows& rows) {
  const CacheFormat& format = view.format;
  if (format.k.bits != 2 || format.v.bits != 2 || format.metadata != MetadataType::kFloat32)
    throw UsageError(
        fmt::format("convert: keys of {} bits, values of {} bits, {} metadata; the token-major "
                    "layout has 2-bit "
                    "codes and float32 metadata only",
                    format.k.bits, format.v.bits,
                    format.metadata == MetadataType::kFloat32 ? "float32" : "bfloat16"));
  if (rows.k_codes == nullptr || rows.v_codes == nullptr || rows.k_scales_zeros == nullptr ||
      rows.v_scales_zeros == nullptr)
    throw UsageError("convert: a token-major array is null");
  ConvertArguments a = CheckedRange(view, request, begin, num_tokens);
  a.packed = true;
  a.codes[0] = rows.k_codes;
  a.codes[1] = rows.v_codes;
  a.scales_zeros[0] = rows.k_scales_zeros;
  a.scales_zeros[1] = rows.v_scales_zeros;
  a.slots = rows.slots;
  return a;
}

}  // namespace

void UnpackPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                 const UnpackedRows& rows, cudaStream_t stream) {
  ConvertArguments a = CheckedRange(view, request, begin, num_tokens);
  a.codes[0] = rows.k_codes;
  a.codes[1] = rows.v_codes;
  a.scales_zeros[0] = rows.k_scales_zeros;
  a.scales_zeros[1] = rows.v_scales_zeros;
  if (num_tokens > 0) LaunchFromPages(a, stream);
}

void PagesToTokenMajor(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                       const TokenMajorRows& rows, cudaStream_t stream) {
  const ConvertArguments a = TokenMajor(view, request, begin, num_tokens, rows);
  if (num_tokens > 0) LaunchFromPages(a, stream);
}

void TokenMajorToPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                       const TokenMajorRows& rows, cudaStream_t stream) {
  const ConvertArguments a = TokenMajor(view, request, begin, num_tokens, rows);
  if (num_tokens > 0) LaunchToPages(a, stream);
}

}  // namespace oscar
