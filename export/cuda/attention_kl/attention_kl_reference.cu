// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/attention_kl/attention_kl_reference.h"
#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/device_array.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

constexpr int kThreads = 256;

struct Args {
  AttentionKlShape shape;
  AttentionKlOptions options;
  AttentionKlInputs inputs;
};

__device__ double Dot(const __nv_bfloat16* a, const __nv_bfloat16* b, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum +=
        static_cast<double>(__bfloat162float(a[i])) * static_cast<double>(__bfloat162float(b[i]));
  return sum;
}

struct Logits {
  double s, s_hat;
  bool exact;
};

// Whether options.skip_exact makes a row ignore this key.
__device__ bool IsSkipped(const Args& a, const AttentionKlSample& sample, int64_t key) {
  return a.options.skip_exact && (key < a.options.sink || sample.position - key < a.options.recent);
}

__device__ Logits LogitsOf(const Args& a, const AttentionKlSample& sample, int64_t key) {
  const AttentionKlShape& n = a.shape;
  const int64_t kv_head = sample.q_head / (n.num_q_heads / n.num_kv_heads);
  const int64_t q_at = (sample.position * n.num_q_heads + sample.q_head) * n.head_dim;
  const int64_t k_at = (key * n.num_kv_heads + kv_head) * n.head_dim;
  const auto logit = [&](const __nv_bfloat16* q, const __nv_bfloat16* k) {
    const double x = a.options.scale * Dot(q + q_at, k + k_at, n.head_dim);
    return a.options.softcap > 0 ? a.options.softcap * tanh(x / a.options.softcap) : x;
  };
  Logits logits;
  logits.exact = key < a.options.sink || sample.position - key < a.options.recent;
  logits.s = logit(a.inputs.q, a.inputs.k);
  logits.s_hat =
      logits.exact ? logits.s : logit(a.inputs.q_hat ? a.inputs.q_hat : a.inputs.q, a.inputs.k_hat);
  return logits;
}

template <typename Combine>
__device__ double OverThreads(double* shared, double own, Combine combine) {
  __syncthreads();
  shared[threadIdx.x] = own;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  return shared[0];
}

__global__ void ReferenceKernel(const Args a, const AttentionKlSample* samples,
                                AttentionKlRow* rows) {
  __shared__ double shared[kThreads], p[kThreads], p_hat[kThreads];
  const AttentionKlSample sample = samples[blockIdx.x];
  const int64_t first =
      a.options.window > 0 ? max(int64_t{0}, sample.position - a.options.window + 1) : 0;
  const int64_t end = sample.position + 1;
  const auto larger = [](double x, double y) { return fmax(x, y); };
  const auto plus = [](double x, double y) { return x + y; };

  double top = -INFINITY, top_hat = -INFINITY;
  for (int64_t key = first + threadIdx.x; key < end; key += kThreads) {
    if (IsSkipped(a, sample, key)) continue;
    const Logits logits = LogitsOf(a, sample, key);
    top = fmax(top, logits.s);
    top_hat = fmax(top_hat, logits.s_hat);
  }
  top = OverThreads(shared, top, larger);
  top_hat = OverThreads(shared, top_hat, larger);
  double sum = 0, sum_hat = 0;
  for (int64_t key = first + threadIdx.x; key < end; key += kThreads) {
    if (IsSkipped(a, sample, key)) continue;
    const Logits logits = LogitsOf(a, sample, key);
    sum += exp(logits.s - top);
    sum_hat += exp(logits.s_hat - top_hat);
  }
  const double lse = top + log(OverThreads(shared, sum, plus));
  const double lse_hat = top_hat + log(OverThreads(shared, sum_hat, plus));

  double kl = 0, error = 0, square = 0;
  for (int64_t key = first + threadIdx.x; key < end; key += kThreads) {
    if (IsSkipped(a, sample, key)) continue;
    const Logits logits = LogitsOf(a, sample, key);
    const double log_p = logits.s - lse, log_p_hat = logits.s_hat - lse_hat;
    const double x = log_p_hat - log_p;
    kl += x > 1 ? exp(log_p_hat) - exp(log_p) * (1 + x) : exp(log_p) * (expm1(x) - x);
    error += (logits.s_hat - logits.s) * (logits.s_hat - logits.s);
    square += logits.s * logits.s;
  }
  AttentionKlRow row{
      OverThreads(shared, kl, plus),     lse, lse_hat, OverThreads(shared, error, plus),
      OverThreads(shared, square, plus), 0,   0};

  if (a.options.outputs) {
    const AttentionKlShape& n = a.shape;
    const int64_t kv_head = sample.q_head / (n.num_q_heads / n.num_kv_heads);
    double out[2] = {0, 0}, out_hat[2] = {0, 0};  // columns threadIdx.x and threadIdx.x + 256
    for (int64_t begin = first; begin < end; begin += kThreads) {
      const int64_t own = begin + threadIdx.x;
      __syncthreads();
      if (own < end) p[threadIdx.x] = p_hat[threadIdx.x] = 0;
      if (own < end && !IsSkipped(a, sample, own)) {
        const Logits logits = LogitsOf(a, sample, own);
        p[threadIdx.x] = exp(logits.s - lse);
        p_hat[threadIdx.x] = (logits.exact ? -1 : 1) * exp(logits.s_hat - lse_hat);
      }
      __syncthreads();
      for (int64_t key = begin; key < min(begin + kThreads, end); ++key)
        for (int c = 0; c < 2; ++c) {
          const int64_t column = threadIdx.x + kThreads * c;
          if (column >= n.v_head_dim) continue;
          const int64_t at = (key * n.num_kv_heads + kv_head) * n.v_head_dim + column;
          const double v = __bfloat162float(a.inputs.v[at]);
          const double v_hat = __bfloat162float(a.inputs.v_hat[at]);
          const double weight = p_hat[key - begin];  // negative for a key that is seen exactly
          out[c] += p[key - begin] * v;
          out_hat[c] += fabs(weight) * (signbit(weight) ? v : v_hat);
        }
    }
    double difference = 0, size = 0;
    for (int c = 0; c < 2; ++c) {
      difference += (out_hat[c] - out[c]) * (out_hat[c] - out[c]);
      size += out[c] * out[c];
    }
    row.output_error_sq = OverThreads(shared, difference, plus);
    row.output_sq = OverThreads(shared, size, plus);
  }
  if (threadIdx.x == 0) rows[blockIdx.x] = row;
}

__device__ uint32_t Hash(uint64_t x) { return static_cast<uint32_t>(SplitMix64(x).Next() >> 32); }

__global__ void FillKernel(__nv_bfloat16* out, const __nv_bfloat16* base, size_t size, float scale,
                           uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < size;
       i += size_t{kThreads} * gridDim.x) {
    const uint64_t at = (seed << 40) + 2 * i;
    const float u = (Hash(at) + 0.5f) * 0x1p-32f, angle = (Hash(at + 1) + 0.5f) * 0x1p-31f;
    const float normal = sqrtf(-2 * logf(u)) * cospif(angle);
    const float from = base == nullptr ? 0 : __bfloat162float(base[i]);
    out[i] = __float2bfloat16(fmaf(scale, normal, from));
  }
}

}  // namespace

std::vector<AttentionKlRow> AttentionKlInFloat64(const AttentionKlShape& shape,
                                                 const AttentionKlOptions& options,
                                                 const AttentionKlInputs& inputs,
                                                 const std::vector<AttentionKlSample>& samples) {
  const DeviceArray<AttentionKlSample> where(samples);
  const DeviceArray<AttentionKlRow> rows(samples.size());
  if (samples.empty()) return {};
  ReferenceKernel<<<static_cast<unsigned>(samples.size()), kThreads>>>({shape, options, inputs},
                                                                       where.data(), rows.data());
  OSCAR_CUDA_CHECK_LAUNCH("attention-KL (float64 reference)");
  return rows.ToHost();
}

void FillAroundNormal(__nv_bfloat16* out, const __nv_bfloat16* base, size_t size, double scale,
                      uint64_t seed) {
  FillKernel<<<1024, kThreads>>>(out, base, size, static_cast<float>(scale), seed);
  OSCAR_CUDA_CHECK_LAUNCH("normal numbers");
}

}  // namespace oscar
