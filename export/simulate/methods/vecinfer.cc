// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// VecInfer (arXiv 2510.06175, section 3). Key channels are divided by their sqrt(max|k|), and keys
// are rotated by a Hadamard matrix. Keys and values are cut into short vectors, each of which is
// replaced by the nearest entry of a codebook. A layer has one codebook for keys and one for
// values, fitted to calibration rows by 30 steps of k-means. The last 128 tokens stay exact. The
// paper fits channels and codebooks to different texts; here both are fitted to the same rows.
#include <ATen/ATen.h>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/vector_codebook.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

struct VecInferRow {
  std::string_view name, description;
  int64_t width;  // values per vector, which is stored as an 8-bit index
};

constexpr VecInferRow kVecInferTable[] = {
    {"vecinfer_2",
     "VecInfer: scaled and rotated keys, vectors of 4 values as 8-bit codebook indices", 4},
    {"vecinfer_4",
     "VecInfer: scaled and rotated keys, vectors of 2 values as 8-bit codebook indices", 2},
};

constexpr CacheWindows kVecInferWindows = {0, 128};
constexpr int64_t kVecInferPoints = 1 << 14;  // evenly spaced points to which a codebook is fitted

// Returns sqrt(max|x|), or 1 for a channel of zeros: [num_kv_heads, dim] float64 on the host.
at::Tensor SmoothScales(const std::vector<at::Tensor>& sequences) {
  at::Tensor largest;
  for (const at::Tensor& rows : sequences) {
    const at::Tensor own = rows.abs().amax(0).to(at::kCPU, at::kDouble);
    largest = largest.defined() ? at::maximum(largest, own) : own;
  }
  return largest.masked_fill(largest.eq(0), 1).sqrt();
}

// Cuts rows [tokens, num_kv_heads, dim] of all sequences into vectors. Rotates them first if
// `rotation` is defined.
at::Tensor VectorsOf(const std::vector<at::Tensor>& sequences, const at::Tensor& rotation,
                     int64_t width) {
  at::Tensor rows = at::cat(sequences).to(at::kCPU, at::kDouble).transpose(0, 1);
  if (rotation.defined()) rows = at::matmul(rows, rotation.to(at::kDouble));
  const at::Tensor vectors = rows.reshape({-1, width});
  return vectors.slice(0, 0, {}, (vectors.size(0) + kVecInferPoints - 1) / kVecInferPoints);
}

RotatedQuantizer VecInferSide(const std::vector<at::Tensor>& sequences, at::Tensor rotation,
                              at::Tensor inverse, int64_t width, uint64_t seed) {
  const at::Tensor codebook =
      VectorCodebook(VectorsOf(sequences, rotation, width), {.entries = 256, .seed = seed});
  return {.rotation = std::move(rotation),
          .inverse = std::move(inverse),
          .codec = [codebook, width](const at::Tensor& rows) {
            return NearestEntries(rows.unflatten(-1, {-1, width}), codebook).flatten(-2);
          }};
}

LayerCache VecInferCache(int64_t width, const MethodContext& context, size_t layer_index) {
  const CalibrationRows& rows = context.rows();
  const at::Tensor scales = SmoothScales(rows.k);
  const at::Tensor turn =
      HadamardTensor(context.layers()[layer_index].attention.head_dim).to(at::kDouble);
  const uint64_t seed = context.options().seed;
  LayerCache cache =
      RotatedCache(context, {},
                   {VecInferSide(rows.k, turn.div(scales.unsqueeze(2)).to(at::kFloat),
                                 turn.mul(scales.unsqueeze(1)).to(at::kFloat), width, seed),
                    VecInferSide(rows.v, {}, {}, width, seed)});
  cache.k_exact = cache.v_exact = ExactInWindows(kVecInferWindows);
  return cache;
}

CacheCost VecInferCost(int64_t width, const MethodContext& context, int64_t tokens) {
  const CacheLayout layout{.payload_bits = 8 / static_cast<double>(width),
                           .metadata_bits = 0,
                           .actual_metadata_bits = 0,
                           .sink_tokens = kVecInferWindows.sink,
                           .recent_tokens = kVecInferWindows.recent};
  return MeanOverCache(context.layers(), 1, [&](size_t layer_index, bool keys) {
    const AttentionSpec& spec = context.layers()[layer_index].attention;
    const auto row =
        static_cast<double>(spec.num_kv_heads * (keys ? spec.head_dim : spec.v_head_dim));
    return CacheCost{row * PaperBitsPerElement(layout, tokens),
                     row * ActualBitsPerElement(layout, tokens)};
  });
}

}  // namespace

std::vector<CacheMethod> VecInferMethods() {
  std::vector<CacheMethod> methods;
  for (const VecInferRow& row : kVecInferTable) {
    methods.push_back(
        {.name = row.name,
         .description = row.description,
         .takes_clip = false,
         .takes_windows = false,
         .needs_rows = true,
         .make = [&row](
                     const MethodContext& context, size_t layer_index,
                     const ArmOptions&) { return VecInferCache(row.width, context, layer_index); },
         .cost = [&row](const MethodContext& context, const ArmOptions&,
                        int64_t tokens) { return VecInferCost(row.width, context, tokens); }});
  }
  return methods;
}

}  // namespace oscar
