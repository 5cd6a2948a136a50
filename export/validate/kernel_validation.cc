// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/kernel_validation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/model/run/attention.h"  // SoftCap
#include "capture/model/spec/use_limits.h"
#include "export/cuda/device/cuda_check.h"
#include "export/measures/kernels.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"

namespace oscar {
namespace {

constexpr int64_t kStates = 8;  // cache states per sequence for which attention is computed
// The largest relative error of a kernel's attention output that passes. The kernel rounds
// probabilities to 11 significant bits, and queries and values to 8 or 11. A wrong scale, token or
// head gives errors above 0.1.
constexpr double kKernelErrorLimit = 0.01;

// Returns evenly spaced lengths. The last one is that of the whole sequence.
std::vector<int64_t> StateLengths(int64_t tokens) {
  std::vector<int64_t> lengths;
  for (int64_t state = 1; state <= kStates; ++state) {
    const int64_t length = tokens * state / kStates;
    if (length > 0 && (lengths.empty() || length > lengths.back())) lengths.push_back(length);
  }
  return lengths;
}

at::Tensor HeadsFirst64(const at::Tensor& rows) {  // [T, heads, dim] -> [heads, T, dim] float64
  return rows.permute({1, 0, 2}).to(at::kDouble);
}

// Copies [T, heads, dim] on any device to [heads][T * dim] on the host.
std::vector<std::vector<float>> HostHeads(const at::Tensor& rows) {
  const at::Tensor host = rows.to(at::kFloat).permute({1, 0, 2}).contiguous().cpu();
  const int64_t values = host.numel() / host.size(0);
  std::vector<std::vector<float>> heads;
  for (int64_t head = 0; head < host.size(0); ++head) {
    const float* begin = host.const_data_ptr<float>() + head * values;
    heads.emplace_back(begin, begin + values);
  }
  return heads;
}

at::Tensor KernelRotation(const StoredSide& side, at::Device device) {
  return RotationTensor(side).to(device, at::kBFloat16).contiguous();
}

// Returns the layer's attention sinks in the form that the kernel takes; undefined if it has none.
at::Tensor SinksOf(const AttentionView& view) {
  if (view.sinks.defined()) return view.sinks.to(at::kFloat).contiguous();
  return SinkLogits(view.layer.attention, view.q.device());
}

}  // namespace

at::Tensor ExactAttention(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& sinks) {
  const int64_t tokens = k.size(1);
  const int64_t first = std::max<int64_t>(0, tokens - spec.window.value_or(tokens));
  at::Tensor logits = at::matmul(q, k.slice(1, first).transpose(1, 2)).mul_(spec.scale);
  SoftCap(spec.softcap, logits);
  if (sinks.defined()) {
    const at::Tensor column = sinks.to(at::kDouble).view({q.size(0), q.size(1), 1});
    logits = at::cat({logits, column}, -1);
  }
  return at::matmul(logits.softmax(-1).narrow(-1, 0, tokens - first), v.slice(1, first));
}

double KernelValidation::Squares::relative() const {
  return energy > 0 ? std::sqrt(error / energy) : 0;
}

KernelValidation::KernelValidation(const Artifact& artifact, at::Device device,
                                   const KernelValidationOptions& options)
    : artifact_(artifact), device_(device), options_(options) {
  if (!device.is_cuda()) {
    throw ResourceError(
        fmt::format("the kernels need a CUDA device, but the model runs on {}", device.str()));
  }
  OSCAR_CUDA_CHECK(cudaSetDevice(device.index()));  // our CUDA runtime is not LibTorch's
}

void KernelValidation::OnLayerBegin(const LayerSpec& layer) {
  const AttentionSpec& spec = layer.attention;
  if (const std::string why = WhyNotInKernels(layer); !why.empty())
    throw UsageError("the kernels: " + why + "; leave out --kernels to simulate the cache");
  const StoredLayer stored = artifact_.ReadLayer(layer.layer_id);
  per_head_ =
      stored.k.num_rotations == spec.num_kv_heads && stored.v.num_rotations == spec.num_kv_heads;
  const StoredSide& k = per_head_ ? stored.k : SharedSide(stored.k, stored.k_shared);
  const StoredSide& v = per_head_ ? stored.v : SharedSide(stored.v, stored.v_shared);
  if (k.num_rotations == 0 || v.num_rotations == 0) {
    throw InputError(
        fmt::format("{}: layer {} needs rotations for keys and values, either one per KV head ({} "
                    "heads) or one shared by all heads",
                    artifact_.directory().string(), layer.layer_id, spec.num_kv_heads));
  }
  rotations_ = {KernelRotation(k, device_), KernelRotation(v, device_), k.clip_ratio, v.clip_ratio};
  const auto side = [&](int64_t dim, int bits) {
    const int64_t group = options_.quant_group_size == 0 ? dim : options_.quant_group_size;
    return PagedSide{static_cast<int>(dim), bits, static_cast<int>(group)};
  };
  format_.k = side(spec.head_dim, options_.k_bits);
  format_.v = side(spec.v_head_dim, options_.v_bits);
  Layer& own = layers_.emplace_back();
  own.layer_id = layer.layer_id;
  own.heads.resize(static_cast<size_t>(spec.num_kv_heads));
}

void KernelValidation::OnAttention(const AttentionView& view) {
  if (view.stream != 0 || view.sequence >= options_.num_sequences) return;
  const std::vector<int64_t> lengths = StateLengths(view.q.size(0));
  const at::Tensor k = view.k.to(at::kBFloat16).contiguous();
  const at::Tensor v = view.v.to(at::kBFloat16).contiguous();
  const KernelCache cache(view.layer.attention, format_, options_.windows, rotations_, k, v,
                          lengths);
  const at::Tensor rows = at::tensor(lengths, at::kLong).sub_(1).to(view.q.device());
  const at::Tensor sinks = SinksOf(view);
  const KernelCache::Decoded decoded =
      cache.Decode(view.q.index_select(0, rows).to(at::kBFloat16).contiguous(), sinks);
  CompareCodes(cache, QuantizedTokens(lengths.back(), options_.windows));
  CompareOutputs(view, sinks, cache, lengths, decoded);
  Layer& layer = layers_.back();
  const bool first = view.sequence == 0;
  layer.write_us = first ? cache.write_us() : std::min(layer.write_us, cache.write_us());
  layer.decode_us = first ? decoded.us : std::min(layer.decode_us, decoded.us);
  sequences_[view.sequence] = {view.q.size(0), static_cast<int64_t>(lengths.size())};
}

void KernelValidation::CompareCodes(const KernelCache& cache, int64_t tokens) {
  if (tokens == 0) return;
  std::vector<Head>& heads = layers_.back().heads;
  const at::Tensor host = cache.pages().cpu();
  const std::span<const uint8_t> pages(host.const_data_ptr<uint8_t>(),
                                       static_cast<size_t>(host.numel()));
  const auto compare = [&](CacheOrder order, const PagedSide& side, double clip,
                           const at::Tensor& all_rotated) {
    const at::Tensor rotated = all_rotated.narrow(0, options_.windows.sink, tokens).to(at::kFloat);
    const RotatedQuantizer simulator{
        .rotation = {},
        .codes = {.bits = {side.bits}, .clip = {clip}, .quant_group_size = side.quant_group_size}};
    const auto rows = HostHeads(rotated), simulated = HostHeads(RoundTrip(simulator, rotated));
    ParallelFor(static_cast<int64_t>(heads.size()), [&](int64_t head) {
      const auto i = static_cast<size_t>(head);
      const StoredRows stored = ReadStoredRows(pages, format_, static_cast<int>(heads.size()),
                                               static_cast<int>(head), order, tokens);
      heads[i].agreement.Add(
          CompareWithCodec(stored, side, format_.metadata, clip, rows[i], simulated[i]));
    });
  };
  compare(CacheOrder::kKeys, format_.k, rotations_.k_clip, cache.rotated_k());
  compare(CacheOrder::kValues, format_.v, rotations_.v_clip, cache.rotated_v());
}

void KernelValidation::CompareOutputs(const AttentionView& view, const at::Tensor& sinks,
                                      const KernelCache& cache, const std::vector<int64_t>& lengths,
                                      const KernelCache::Decoded& decoded) {
  const AttentionSpec& spec = view.layer.attention;
  const int64_t heads = spec.num_kv_heads, ratio = spec.gqa_ratio();
  std::vector<Head>& own = layers_.back().heads;
  const int64_t most = QuantizedTokens(lengths.back(), options_.windows);
  // dequantized() returns what the pages hold, [heads, most, dim] float64.
  const at::Tensor pages = cache.pages().cpu();
  const auto dequantized = [&](CacheOrder order, int64_t dim) {
    at::Tensor all = at::empty({heads, most, dim}, at::kFloat);
    ParallelFor(heads, [&](int64_t head) {
      const StoredRows rows =
          ReadStoredRows({pages.const_data_ptr<uint8_t>(), static_cast<size_t>(pages.numel())},
                         format_, static_cast<int>(heads), static_cast<int>(head), order, most);
      std::ranges::copy(DequantizeRows(rows), all.mutable_data_ptr<float>() + head * most * dim);
    });
    return all.to(view.q.device(), at::kDouble);
  };
  const at::Tensor k_pages = dequantized(CacheOrder::kKeys, spec.head_dim);
  const at::Tensor v_pages = dequantized(CacheOrder::kValues, spec.v_head_dim);
  const at::Tensor k_rotated = HeadsFirst64(cache.rotated_k());
  const at::Tensor v_rotated = HeadsFirst64(cache.rotated_v());
  const at::Tensor k_exact = HeadsFirst64(view.k), v_exact = HeadsFirst64(view.v);
  const at::Tensor back = rotations_.v.to(at::kDouble).transpose(1, 2);
  at::Tensor sums = at::zeros({4, heads}, k_exact.options());
  for (size_t state = 0; state < lengths.size(); ++state) {
    const int64_t length = lengths[state], i = static_cast<int64_t>(state);
    const int64_t quantized = QuantizedTokens(length, options_.windows);
    const auto as_stored = [&](const at::Tensor& rotated, const at::Tensor& in_pages) {
      at::Tensor rows = rotated.slice(1, 0, length).clone();
      if (quantized > 0)
        rows.narrow(1, options_.windows.sink, quantized).copy_(in_pages.slice(1, 0, quantized));
      return rows;
    };
    const auto grouped = [&](const at::Tensor& x, int64_t dim) {
      return x.to(at::kDouble).reshape({heads, ratio, dim});
    };
    const at::Tensor reference =
        ExactAttention(spec, grouped(decoded.q[i], spec.head_dim), as_stored(k_rotated, k_pages),
                       as_stored(v_rotated, v_pages), sinks);
    const at::Tensor exact =
        ExactAttention(spec, grouped(view.q[length - 1], spec.head_dim),
                       k_exact.slice(1, 0, length), v_exact.slice(1, 0, length), sinks);
    const at::Tensor out = grouped(decoded.out[i], spec.v_head_dim);
    const auto add = [&](int row, const at::Tensor& found, const at::Tensor& expected) {
      sums[row].add_(found.sub(expected).square().sum({1, 2}));
      sums[row + 1].add_(expected.square().sum({1, 2}));
    };
    add(0, out, reference);
    add(2, at::matmul(out, back), exact);
  }
  const at::Tensor host = sums.cpu();
  for (int64_t head = 0; head < heads; ++head) {
    const auto sum = [&](int row) { return host[row][head].item<double>(); };
    own[static_cast<size_t>(head)].kernel.Add({sum(0), sum(1)});
    own[static_cast<size_t>(head)].total.Add({sum(2), sum(3)});
    if (!std::isfinite(sum(0)) || !std::isfinite(sum(2))) {
      throw NumericalError(
          fmt::format("layer {}, KV head {}: the decode kernel returned NaN or infinity",
                      view.layer.layer_id, head));
    }
  }
}

Json KernelValidation::Report() const {
  CodecAgreement agreement;
  Squares kernel, total;
  double worst = 0;
  measures::Kernels report;
  const auto write = [](const CodecAgreement& of, const Squares& kernel_errors,
                        const Squares& all_errors, measures::KernelHead& to) {
    to = {of.codes,
          of.differing_codes,
          of.differing_metadata,
          of.differing_simulated,
          kernel_errors.relative(),
          all_errors.relative()};
  };
  for (const Layer& layer : layers_) {
    auto& heads = report.layers
                      .emplace_back(measures::KernelLayer{
                          layer.layer_id, layer.write_us, layer.decode_us, {}})
                      .heads;
    for (const Head& head : layer.heads) {
      agreement.Add(head.agreement);
      kernel.Add(head.kernel);
      total.Add(head.total);
      worst = std::max(worst, head.kernel.relative());
      write(head.agreement, head.kernel, head.total, heads.emplace_back());
    }
  }
  for (const auto& [sequence, counted] : sequences_) {
    report.tokens += counted.first;
    report.queries += counted.second;
  }
  cudaDeviceProp properties;
  int device = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  write(agreement, kernel, total, report);
  report.gpu = properties.name;
  report.rotations = per_head_ ? "per_head" : "shared";
  report.format = {format_.k.bits, format_.v.bits, format_.k.quant_group_size, format_.page_tokens,
                   format_.metadata == MetadataType::kFloat32 ? "f32" : "bf16"};
  report.sink_tokens = options_.windows.sink;
  report.recent_tokens = options_.windows.recent;
  report.kernel_error_limit = kKernelErrorLimit;
  report.passed = agreement.differing() == 0 && worst <= kKernelErrorLimit;
  return report;
}

}  // namespace oscar
