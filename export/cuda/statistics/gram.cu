// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/statistics/gram.h"
#include "export/cuda/statistics/gram_float64_kernel.cuh"
#include "export/cuda/statistics/gram_reduce_kernel.cuh"
#include "export/cuda/statistics/gram_split_kernel.cuh"
#include "linalg/error.h"

namespace oscar {
namespace {

// Calls visit(cover) with the cover of matrices of `dim` features.
template <typename Visit>
auto WithCover(int dim, const Visit& visit) {
  if (dim <= 64) return visit(GramCover<4, false>());
  if (dim <= 128) return visit(GramCover<8, false>());
  return visit(GramCover<8, true>());
}

// CTAs of one launch: as many as fit an H200 at once. A constant, not the device's own number, so
// that the order of additions, and with it the bytes, is the same everywhere.
constexpr int kSms = 132;
template <typename Cover>
constexpr int kCtasPerSm = Cover::kRowBlocks == 8 ? 2 : 6;
constexpr int kFloat64Depth = 2;  // m16n8k8: k16 needs more registers and is no faster
constexpr int kMinRowsPerSplit = 256;

struct Cut {
  int regions, splits, tokens_per_split;
};

Cut CutOf(const AttentionRows& rows, int ctas) {
  const int regions = GramRegions(rows.dim);
  const auto tokens = static_cast<int>(rows.num_tokens);
  const int least = (kMinRowsPerSplit + rows.gqa_ratio() - 1) / rows.gqa_ratio();
  const int wanted = std::max(ctas / (regions * rows.num_kv_heads), 1);
  const int per_split = std::max((tokens + wanted - 1) / wanted, least);
  return {regions, (tokens + per_split - 1) / per_split, per_split};
}

template <typename Cover>
size_t PartialBytes(const AttentionRows& rows, const Cut& cut) {
  return sizeof(double2) * Cover::kPairs * Cover::kThreads * rows.num_kv_heads * cut.regions *
         cut.splits;
}

template <typename Cover>
void Reduce(const AttentionRows& rows, const Cut& cut, FeatureOrder order, const double2* partials,
            double* sums, cudaStream_t stream) {
  const dim3 grid(Cover::kPairs * Cover::kThreads / kReduceLanes, cut.regions, rows.num_kv_heads);
  GramReduceKernel<Cover><<<grid, dim3(kReduceLanes, kReduceStrands), 0, stream>>>(
      partials, rows.dim, cut.splits, order, sums);
  OSCAR_CUDA_CHECK_LAUNCH("GramReduceKernel");
}

// Launches a kernel of either path: grid regions, splits, KV heads.
template <typename Cover, typename... Parameters, typename... Arguments>
void Multiply(void (*kernel)(Parameters...), int shared_bytes, const AttentionRows& rows,
              const Cut& cut, cudaStream_t stream, Arguments... arguments) {
  OSCAR_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  const dim3 grid(cut.regions, cut.splits, rows.num_kv_heads);
  kernel<<<grid, Cover::kThreads, shared_bytes, stream>>>(ViewOf(rows), arguments...);
  OSCAR_CUDA_CHECK_LAUNCH("a Gram kernel");
}

template <typename Cover>
void RunFloat64(const AttentionRows& rows, const Cut& cut, const double* weights, double2* partials,
                double* sums, cudaStream_t stream) {
  WithRowType(rows.type, [&](auto type) {
    const auto kernel =
        weights == nullptr ? GramFloat64Kernel<Cover, type, false, kFloat64Depth, kCtasPerSm<Cover>>
                           : GramFloat64Kernel<Cover, type, true, kFloat64Depth, kCtasPerSm<Cover>>;
    Multiply<Cover>(kernel, 2 * sizeof(Float64Stage<Cover>), rows, cut, stream, weights,
                    cut.tokens_per_split, partials);
  });
  Reduce<Cover>(rows, cut, FeatureOrder::kDealt, partials, sums, stream);
}

template <typename Cover>
void RunSplit(const AttentionRows& rows, const Cut& cut, double2* partials, double* sums,
              cudaStream_t stream) {
  WithRowType(rows.type, [&](auto type) {
    Multiply<Cover>(GramSplitKernel<Cover, type, kCtasPerSm<Cover>>,
                    sizeof(SplitShared<Cover, type>), rows, cut, stream, cut.tokens_per_split,
                    kSplitRows, partials);
  });
  Reduce<Cover>(rows, cut, FeatureOrder::kNatural, partials, sums, stream);
}

template <typename Cover>
Cut CutOf(const AttentionRows& rows) {
  return CutOf(rows, kSms * kCtasPerSm<Cover>);
}

}  // namespace

size_t GramWorkspaceBytes(const AttentionRows& rows) {
  CheckAttentionRows(rows);
  return WithCover(rows.dim, [&](auto cover) {
    using Cover = decltype(cover);
    const Cut cut = CutOf<Cover>(rows);
    return sizeof(double2) * Cover::kPairs * Cover::kThreads * rows.num_kv_heads * cut.regions *
           cut.splits;
  });
}

void AccumulateGram(const AttentionRows& rows, const GramOptions& options, double* sums,
                    void* workspace, cudaStream_t stream) {
  CheckAttentionRows(rows);
  const bool float64 = options.precision == GramPrecision::kFloat64;
  if (options.weights != nullptr && !float64)
    throw UsageError("weighted second moments are computed in float64 only");
  if (rows.num_tokens == 0) return;
  auto* partials = static_cast<double2*>(workspace);
  WithCover(rows.dim, [&](auto cover) {
    using Cover = decltype(cover);
    const Cut cut = CutOf<Cover>(rows);
    if (float64) {
      RunFloat64<Cover>(rows, cut, options.weights, partials, sums, stream);
    } else {
      RunSplit<Cover>(rows, cut, partials, sums, stream);
    }
  });
}

}  // namespace oscar
