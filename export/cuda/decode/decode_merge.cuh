// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Merges the running softmaxes of all warps into the attention output. The warps of a CTA merge in
// shared memory, and the CTAs of a request's unit in global memory. The last CTA to arrive adds up
// all parts in a fixed order, so that results do not depend on the order of arrival. The arrival
// count must be zero before a launch and is zero after it.
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"  // Exp2

namespace oscar {

inline constexpr int kDecodeThreads = 32 * kDecodeWarps;

// The merge's shared memory, which reuses that of the ring.
template <class Shape>
struct MergeBuffers {
  static constexpr int kRow = Shape::kV + 4;  // per head; padded so that the stores of a warp have
                                              // no bank conflicts
  float* out;                                 // [kDecodeWarps, heads, kRow]
  float* reference;                           // [kDecodeWarps, heads]
  float* sum;                                 // [kDecodeWarps, heads]

  __device__ MergeBuffers(uint8_t* shared, int heads)
      : out(reinterpret_cast<float*>(shared)),
        reference(out + kDecodeWarps * heads * kRow),
        sum(reference + kDecodeWarps * heads) {}
  static constexpr int kBytes = kDecodeWarps * kUnitHeads * (kRow + 2) * 4;
};

// Converts sums over codes into sums of p * v, to which window tiles can be added. Called once,
// after the last record.
template <class Shape, class State>
__device__ inline void FinishCodes(State& state) {
  const float unscale = 1 / state.value_scale;
#pragma unroll
  for (int h = 0; h < Shape::kLaneHeads; ++h) {
#pragma unroll
    for (int n = 0; n < Shape::kValueGranules; ++n)
#pragma unroll
      for (int step = 4; step < 32; step *= 2)
        state.zeros[n][h] += __shfl_xor_sync(~0U, state.zeros[n][h], step);
#pragma unroll
    for (int b = 0; b < Shape::kV / 16; ++b)
#pragma unroll
      for (int i = h; i < 4; i += Shape::kLaneHeads) {
        const int octet = 2 * b + i / 2;
        const float codes = state.out[b][i] * (0x1p24F / static_cast<float>(1 << 2 * (octet % 4)));
        // A narrow head has two columns but one set of zeros, which must count once.
        const bool mine = !Shape::kNarrow || i % 2 == 0;
        const float zeros =
            mine ? state.zeros[octet * Shape::kValueGranules / (Shape::kV / 8)][h] : 0;
        state.out[b][i] = (codes - zeros) * unscale;
      }
  }
}

template <class Shape, class State>
__device__ inline void StoreWarp(const MergeBuffers<Shape>& buffers, int heads, int warp, int lane,
                                 State& state) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int h = 0; h < Shape::kLaneHeads; ++h) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
      state.sum[h] += __shfl_xor_sync(~0U, state.sum[h], step);
    const int head = Shape::kLaneHeads * t + h;
    if (head >= heads) continue;
    if (g == 0) {
      buffers.reference[warp * heads + head] = state.reference[h];
      buffers.sum[warp * heads + head] = state.sum[h];
    }
    float* out = buffers.out + (warp * heads + head) * buffers.kRow;
#pragma unroll
    for (int b = 0; b < Shape::kV / 16; ++b)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x = state.out[b][h + 2 * half];
        if (Shape::kNarrow) x += state.out[b][1 + 2 * half];
        out[16 * b + 8 * half + g] = x;
      }
  }
}

// Writes results of one request and unit. `head` counts from first_head.
struct DecodeResult {
  const DecodeKernelArguments& args;
  int request, first_head;

  // Returns the factor that normalizes the outputs of a softmax with this reference and denominator
  // `sum`, including the attention sink.
  __device__ float Normalizer(int head, float reference, float sum) const {
    const float* sinks = args.call.attention_sinks;
    if (sinks == nullptr) return sum > 0 || sum != sum ? 1 / sum : 0;
    const float sink = sinks[first_head + head] * kLog2E;
    const float top = fmaxf(reference, sink);
    const float kept = Exp2(reference - top);
    return kept / (sum * kept + Exp2(sink - top));
  }
  __device__ void StoreLse(int head, float reference, float sum) const {
    if (args.call.lse == nullptr) return;
    float total = sum > 0 ? reference + log2f(sum) : -INFINITY;
    if (sum != sum) total = sum;
    if (args.call.attention_sinks != nullptr) {
      const float sink = args.call.attention_sinks[first_head + head] * kLog2E;
      const float top = fmaxf(total, sink);
      if (top > -INFINITY) total = top + log2f(Exp2(total - top) + Exp2(sink - top));
    }
    args.call.lse[request * args.num_q_heads + first_head + head] = total / kLog2E;
  }
  __device__ void Store(int head, int value_dim, int dim, float4 x) const {
    const int64_t at = (int64_t{request} * args.num_q_heads + first_head + head) * value_dim + dim;
    if (args.call.out_f32 != nullptr) *reinterpret_cast<float4*>(args.call.out_f32 + at) = x;
    if (args.call.out != nullptr) {
      __nv_bfloat162 pair[2] = {__floats2bfloat162_rn(x.x, x.y), __floats2bfloat162_rn(x.z, x.w)};
      *reinterpret_cast<uint2*>(args.call.out + at) = *reinterpret_cast<const uint2*>(pair);
    }
  }
};

__device__ inline void AddScaled(float4& sum, const float4& x, float factor) {
  sum.x = fmaf(x.x, factor, sum.x);
  sum.y = fmaf(x.y, factor, sum.y);
  sum.z = fmaf(x.z, factor, sum.z);
  sum.w = fmaf(x.w, factor, sum.w);
}
__device__ inline float4 Scaled(const float4& x, float factor) {
  return make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
}

// Merges the warps' outputs. If `final`, stores the result, otherwise this CTA's part at index
// `cta`.
template <class Shape>
__device__ inline void MergeWarps(const MergeBuffers<Shape>& buffers, const DecodeResult& result,
                                  int heads, int cta, bool final) {
  const DecodeKernelArguments& args = result.args;
  for (int item = threadIdx.x; item < heads * (Shape::kV / 4); item += kDecodeThreads) {
    const int head = item / (Shape::kV / 4), dim = item % (Shape::kV / 4) * 4;
    float reference = kNoScore;
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w)
      reference = fmaxf(reference, buffers.reference[w * heads + head]);
    float sum = 0;
    float4 out = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) {
      const float factor = Exp2(buffers.reference[w * heads + head] - reference);
      sum = fmaf(buffers.sum[w * heads + head], factor, sum);
      AddScaled(
          out,
          *reinterpret_cast<const float4*>(buffers.out + (w * heads + head) * buffers.kRow + dim),
          factor);
    }
    if (final) {
      result.Store(head, Shape::kV, dim, Scaled(out, result.Normalizer(head, reference, sum)));
      if (dim == 0) result.StoreLse(head, reference, sum);
    } else {
      const int64_t at = int64_t{cta} * args.heads_per_unit + head;
      __stcg(reinterpret_cast<float4*>(args.partial_out + at * Shape::kV + dim), out);
      if (dim == 0) __stcg(args.partial_sums + at, make_float2(reference, sum));
    }
  }
}

constexpr int MergeSplitsBytes(int splits) {
  return 16 * kDecodeThreads + 4 * kUnitHeads * (splits + 2);
}

// Called by the last CTA to arrive for a request's unit. Adds up the parts of `splits` CTAs from
// `first_cta` on. `shared` has MergeSplitsBytes(splits) bytes.
template <class Shape>
__device__ inline void MergeSplits(const DecodeResult& result, int heads, int first_cta, int splits,
                                   float* shared) {
  const DecodeKernelArguments& args = result.args;
  constexpr int kItems = Shape::kV / 4, kBatch = 16;
  float4* part_out = reinterpret_cast<float4*>(shared);  // [kDecodeThreads]
  float* totals = shared + 4 * kDecodeThreads;           // [heads, 2]: reference, sum
  float* factors = totals + 2 * kUnitHeads;              // [heads, splits]
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // Several threads share an output if there are enough. Their parts are added in a fixed order.
  const int items = heads * kItems;
  int parts = 1;
  while (parts * 2 * items <= kDecodeThreads) parts *= 2;
  const int64_t stride = int64_t{args.heads_per_unit} * Shape::kV;
  struct Part {
    int head, dim, begin, end;
    const float* from;
  };
  const auto part_of = [&](int item) {
    const int part = item / items;
    Part p;
    p.head = item % items / kItems, p.dim = item % kItems * 4;
    p.begin = splits * part / parts, p.end = splits * (part + 1) / parts;
    p.from = args.partial_out +
             (int64_t{first_cta + p.begin} * args.heads_per_unit + p.head) * Shape::kV + p.dim;
    return p;
  };
  // The first outputs are loaded while references and sums are computed.
  float4 early[kBatch];
  const Part first = part_of(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    if (static_cast<int>(threadIdx.x) < items * parts && first.begin + i < first.end)
      early[i] = __ldcg(reinterpret_cast<const float4*>(first.from + i * stride));

  for (int head = warp; head < heads; head += kDecodeWarps) {
    const float2* sums = args.partial_sums + int64_t{first_cta} * args.heads_per_unit + head;
    float reference = kNoScore, sum = 0;
    for (int s = lane; s < splits; s += 32) {
      const float2 part = __ldcg(sums + int64_t{s} * args.heads_per_unit);
      const float raised = fmaxf(reference, part.x);
      sum = sum * Exp2(reference - raised) + part.y * Exp2(part.x - raised);
      reference = raised;
      factors[head * splits + s] = part.x;
    }
    float top = reference;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0U, top, step));
    sum *= Exp2(reference - top);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
    for (int s = lane; s < splits; s += 32)
      factors[head * splits + s] = Exp2(factors[head * splits + s] - top);
    if (lane == 0) totals[2 * head] = top, totals[2 * head + 1] = sum;
  }
  __syncthreads();

  for (int item = threadIdx.x; item < items * parts; item += kDecodeThreads) {
    const Part p = part_of(item);
    float4 out = make_float4(0, 0, 0, 0);
    int s = p.begin;
    if (item == static_cast<int>(threadIdx.x)) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (p.begin + i < p.end) AddScaled(out, early[i], factors[p.head * splits + s++]);
    }
    const float* from = p.from + (s - p.begin) * stride;
#pragma unroll 16
    for (; s < p.end; ++s, from += stride)
      AddScaled(out, __ldcg(reinterpret_cast<const float4*>(from)), factors[p.head * splits + s]);
    if (parts == 1)
      result.Store(
          p.head, Shape::kV, p.dim,
          Scaled(out, result.Normalizer(p.head, totals[2 * p.head], totals[2 * p.head + 1])));
    else
      part_out[item] = out;
  }
  if (static_cast<int>(threadIdx.x) < heads)
    result.StoreLse(threadIdx.x, totals[2 * threadIdx.x], totals[2 * threadIdx.x + 1]);
  if (parts == 1) return;
  __syncthreads();
  for (int item = threadIdx.x; item < items; item += kDecodeThreads) {
    const int head = item / kItems, dim = item % kItems * 4;
    float4 out = part_out[item];
    for (int part = 1; part < parts; ++part) AddScaled(out, part_out[part * items + item], 1);
    result.Store(head, Shape::kV, dim,
                 Scaled(out, result.Normalizer(head, totals[2 * head], totals[2 * head + 1])));
  }
}

}  // namespace oscar
