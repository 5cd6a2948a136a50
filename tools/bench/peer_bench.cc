// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Benchmarks the peer, with which decode is compared. It is LibTorch's scaled_dot_product_attention
// through cuDNN over a BF16 cache, with K and V as [batch, num_kv_heads, tokens, head_dim]. No
// faster BF16 decode attention is known on an H200. LibTorch's allocator keeps freed memory, so
// each case empties it at the end.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

// The attention shape of Qwen3-8B.
constexpr int64_t kQueryHeads = 32, kKvHeads = 8, kHeadDim = 128;
constexpr double kCacheBytes = 60e9;  // limit for all sets together
constexpr double kWorstError = 0.02;  // relative error, for BF16 outputs

struct Cache {
  std::vector<at::Tensor> q, k, v, out;  // one per set
  ~Cache() {
    q.clear(), k.clear(), v.clear(), out.clear();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
};

at::Tensor Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return std::get<0>(at::_scaled_dot_product_cudnn_attention(q, k, v, /*attn_bias=*/{},
                                                             /*compute_log_sumexp=*/false));
}

// Computes the attention of one request in float64.
at::Tensor ExactAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  std::vector<at::Tensor> heads;
  const int64_t ratio = kQueryHeads / kKvHeads;
  for (int64_t head = 0; head < kKvHeads; ++head) {
    const at::Tensor queries = q.slice(0, head * ratio, (head + 1) * ratio).squeeze(1);
    const at::Tensor scores = queries.to(at::kDouble)
                                  .matmul(k[head].to(at::kDouble).t())
                                  .div(std::sqrt(static_cast<double>(kHeadDim)));
    heads.push_back(scores.softmax(-1).matmul(v[head].to(at::kDouble)));
  }
  return at::cat(heads).unsqueeze(1);
}

BenchCheck Check(const Cache& cache, int64_t batch) {
  double worst = 0;
  std::string where;
  for (size_t set = 0; set < cache.q.size(); set += cache.q.size() - 1) {
    for (int64_t request = 0; request < batch; request += std::max<int64_t>(batch - 1, 1)) {
      const at::Tensor exact =
          ExactAttention(cache.q[set][request], cache.k[set][request], cache.v[set][request]);
      const at::Tensor error = cache.out[set][request].to(at::kDouble).sub(exact);
      const double relative = error.norm().item<double>() / exact.norm().item<double>();
      if (where.empty() || !(relative <= worst)) {
        worst = relative;
        where = fmt::format("set {}, request {}", set, request);
      }
    }
  }
  return {worst <= kWorstError,
          fmt::format("float64 attention: relative error {:.2e} at {}", worst, where)};
}

BenchCase PeerCase(int64_t batch, int64_t tokens) {
  BenchCase bench;
  const int64_t values = batch * kKvHeads * tokens * kHeadDim;  // same for keys and values
  bench.bytes = static_cast<double>(2 * (2 * values + 2 * batch * kQueryHeads * kHeadDim));
  bench.buffers = static_cast<int>(std::clamp(kCacheBytes / bench.bytes, 2.0, 36.0));
  const auto bf16 = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  const auto cache = std::make_shared<Cache>();
  for (int set = 0; set < bench.buffers; ++set) {
    cache->q.push_back(at::randn({batch, kQueryHeads, 1, kHeadDim}, bf16));
    cache->k.push_back(at::randn({batch, kKvHeads, tokens, kHeadDim}, bf16));
    cache->v.push_back(at::randn({batch, kKvHeads, tokens, kHeadDim}, bf16));
  }
  cache->out.resize(cache->q.size());
  c10::cuda::device_synchronize();
  bench.launch = [cache](cudaStream_t stream, int set) {
    const c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream();
    c10::cuda::setCurrentCUDAStream(
        c10::cuda::getStreamFromExternal(stream, c10::cuda::current_device()));
    const auto i = static_cast<size_t>(set);
    cache->out[i] = Attention(cache->q[i], cache->k[i], cache->v[i]);
    c10::cuda::setCurrentCUDAStream(before);
  };
  bench.check = [cache, batch] { return Check(*cache, batch); };
  return bench;
}

}  // namespace

std::vector<BenchEntry> PeerBench() {
  std::vector<BenchEntry> entries;
  const auto add = [&](int64_t batch, int64_t tokens) {
    entries.push_back({"peer", fmt::format("batch {}, {} tokens, torch cuDNN BF16", batch, tokens),
                       [=] { return PeerCase(batch, tokens); }});
  };
  for (const int64_t tokens : {30'000, 60'000, 100'000, 128'000}) add(1, tokens);
  for (const int64_t tokens : {4'096, 30'000}) add(32, tokens);
  return entries;
}

}  // namespace oscar
