// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/runtime_cache.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "export/artifact/artifact_format.h"
#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/bf16_cache.h"
#include "export/simulate/chosen_cache.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/runtime_choice.h"
#include "export/simulate/stored_rotations.h"
#include "linalg/base/error.h"
#include "linalg/llama_q2_codec.h"

namespace oscar {
namespace {

using WindowRows = RuntimeSpec::WindowRows;

constexpr double kPayloadBits = 2, kPaperMetadataBits = 32;

// Returns a codec for rotated rows [num_kv_heads, tokens, dim]. Rows before `prefill_end` are
// written with the prompt, later ones when they leave the recent window.
std::function<at::Tensor(const at::Tensor&)> Codec(const RuntimeSpec& runtime, double clip_ratio,
                                                   int64_t quant_group_size, int64_t prefill_end) {
  return [=, &runtime](const at::Tensor& rows) {
    const auto write = [&](const RowWriter& writer, int64_t begin, int64_t end) {
      const at::Tensor part = rows.slice(1, begin, end).contiguous();
      return begin == end ? part : WriteAndRead(writer, part, clip_ratio, quant_group_size);
    };
    return at::cat(
        {write(runtime.prefill, 0, prefill_end), write(runtime.flush, prefill_end, rows.size(1))},
        1);
  };
}

// Returns `quantized` and `exact` of CachedRows for the keys or the values.
std::pair<at::Tensor, at::Tensor> Store(const RuntimeSpec& runtime, RotatedQuantizer quantizer,
                                        bool is_key, const at::Tensor& rows, int64_t prefill_end) {
  const double clip_ratio = std::exchange(quantizer.codes.clip, {0}).at(0);  // the codec clips
  const int64_t group = quantizer.codes.quant_group_size;
  quantizer.codec = Codec(runtime, clip_ratio, group == 0 ? rows.size(-1) : group, prefill_end);
  if (runtime.bf16_rotation) {
    const Bf16Rows read =
        is_key ? Bf16KeysThroughCache(quantizer, rows) : Bf16ValuesThroughCache(quantizer, rows);
    return {read.quantized, read.exact};
  }
  const at::Tensor row32 = rows.to(at::kFloat);
  const at::Tensor quantized = RoundTrip(quantizer, row32).to(ResultType(rows));
  if (runtime.window_rows != WindowRows::kRotatedHalf) return {quantized, {}};
  quantizer.codec = [](const at::Tensor& y) { return y.to(at::kHalf).to(at::kFloat); };
  return {quantized, RoundTrip(quantizer, row32).to(ResultType(rows))};
}

ExactTokens Windows(const RuntimeSpec& runtime, const CacheWindows& windows) {
  const int64_t sink = windows.sink / runtime.sink_page * runtime.sink_page;
  return runtime.flush_tokens > 1 ? ExactUntilBlocksFill(sink, runtime.flush_tokens, windows.recent)
                                  : ExactInWindows({.sink = sink, .recent = windows.recent});
}

// Returns the position up to which tokens are quantized together with a prompt of `prompt` tokens.
// Later tokens are quantized when they leave the recent window.
int64_t EndOfPrompt(const ExactTokens& exact, int64_t prompt, int64_t tokens) {
  if (prompt >= tokens) return tokens;
  return exact.quantized_end ? std::clamp<int64_t>(exact.quantized_end(prompt), 0, tokens) : prompt;
}

bool IsNative(const RuntimeSpec& runtime, size_t layer_index, size_t num_layers) {
  const auto native = std::min<size_t>(static_cast<size_t>(runtime.native_layers), num_layers / 2);
  return layer_index < native || layer_index + native >= num_layers;
}

// Returns the clip ratios that the server gets: one pair for all layers.
ClipPair ServingClip(const RuntimeSpec& runtime, const MethodContext& context) {
  const Json& serving = JsonMember(context.artifact().manifest(), "serving", kManifestFile);
  const auto ratio = [&](const char* of_heads, const char* shared) {
    return JsonDouble(serving, runtime.per_head ? of_heads : shared, kManifestFile);
  };
  const double k = ratio("k_clip_ratio", "k_clip_ratio_shared");
  return {k, runtime.one_clip_ratio ? k : ratio("v_clip_ratio", "v_clip_ratio_shared")};
}

LayerCache Unquantized() {
  return {.store = [](const CacheSides& rows) {
    return CachedRows{.quantized = {rows.k.to(ResultType(rows.k)), rows.v.to(ResultType(rows.v))}};
  }};
}

// Whether a head consists of whole blocks, if the runtime stores blocks.
bool CodecTakes(const RuntimeSpec& runtime, int64_t dim) {
  return runtime.flush.codec != RowCodec::kLlamaQ2 || dim % LlamaQ2GroupSize(dim) == 0;
}

bool CodecTakes(const RuntimeSpec& runtime, const AttentionSpec& spec) {
  return CodecTakes(runtime, spec.head_dim) && CodecTakes(runtime, spec.v_head_dim);
}

StoredChoice ChosenFor(const RuntimeSpec& runtime, const MethodContext& context,
                       size_t layer_index) {
  return context.artifact().ReadChoice(context.layers()[layer_index].layer_id,
                                       ServedChoice(runtime, context.artifact()));
}

RotatedSides FittedSides(const RuntimeSpec& runtime, const MethodContext& context,
                         size_t layer_index) {
  const StoredLayer& layer = context.Stored(layer_index);
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  const StoredSide& k = runtime.per_head ? layer.k : SharedSide(layer.k, layer.k_shared);
  const StoredSide& v = runtime.per_head ? layer.v : SharedSide(layer.v, layer.v_shared);
  if (!CodecTakes(runtime, spec)) {
    throw InputError(fmt::format(
        "layer {}: {} stores heads in blocks of {} values, but these heads have {} and {} values",
        layer.layer_id, runtime.runtime, kLlamaQ2SigmaValues, spec.head_dim, spec.v_head_dim));
  }
  const int64_t wanted = runtime.per_head ? spec.num_kv_heads : 1;
  if (k.num_rotations != wanted || v.num_rotations != wanted) {
    throw InputError(fmt::format(
        "{}: layer {} has no rotation {}, which {} needs", context.artifact().directory().string(),
        layer.layer_id, runtime.per_head ? "for each KV head" : "for all KV heads together",
        runtime.runtime));
  }
  return AffineSides(context, RotationTensor(k), RotationTensor(v), ServingClip(runtime, context));
}

LayerCache MakeCache(const RuntimeSpec& runtime, const MethodContext& context, size_t layer_index) {
  if (IsNative(runtime, layer_index, context.layers().size())) return Unquantized();
  if (runtime.as_chosen)
    return ChoiceCache(ChosenFor(runtime, context, layer_index),
                       context.layers()[layer_index].attention.num_kv_heads,
                       Windows(runtime, context.options().windows));
  const RotatedSides sides = runtime.chosen ? LoadChoice(runtime, context, layer_index)
                                            : FittedSides(runtime, context, layer_index);
  const ExactTokens exact = Windows(runtime, context.options().windows);
  const int64_t prompt = context.options().prefill_tokens;
  LayerCache cache{
      .store =
          [=, &runtime, k = sides.k, v = sides.v](const CacheSides& rows) mutable {
            GoTo(rows.k, k);
            GoTo(rows.v, v);
            const int64_t end = EndOfPrompt(exact, prompt, rows.k.size(0));
            CachedRows cached;
            std::tie(cached.quantized.k, cached.exact.k) = Store(runtime, k, true, rows.k, end);
            std::tie(cached.quantized.v, cached.exact.v) = Store(runtime, v, false, rows.v, end);
            return cached;
          },
      .k_exact = exact,
      .v_exact = exact};
  if (runtime.bf16_rotation) {
    cache.queries = [k = sides.k](const at::Tensor& queries) mutable {
      GoTo(queries, k);
      return Bf16Queries(k, queries);
    };
  }
  return runtime.chosen ? BehindFold(std::move(cache), sides.pair_scale) : cache;
}

// Returns the bits per element of a layer's keys or values.
CacheCost SideCost(const RuntimeSpec& runtime, const MethodContext& context, int64_t dim,
                   int64_t tokens) {
  const CacheWindows& windows = context.options().windows;
  const int64_t group = context.options().quant_group_size;
  const int64_t values = group == 0 || runtime.prefill.codec == RowCodec::kHalfOffset ? dim : group;
  CacheLayout layout{.payload_bits = kPayloadBits,
                     .metadata_bits = kPaperMetadataBits,
                     .actual_metadata_bits = runtime.metadata_bits,
                     .quant_group_size = values,
                     .sink_tokens = windows.sink / runtime.sink_page * runtime.sink_page,
                     .recent_tokens = windows.recent};
  if (runtime.metadata_group > 0) layout.quant_group_size = runtime.metadata_group;
  const double paper = PaperBitsPerElement(layout, tokens);
  if (!runtime.windows_held_twice) return {paper, ActualBitsPerElement(layout, tokens)};
  const double quantized =
      kPayloadBits + runtime.metadata_bits / static_cast<double>(layout.quant_group_size);
  const auto kept = static_cast<double>(layout.sink_tokens + layout.recent_tokens);
  return {paper, quantized + kKeptBits * kept / static_cast<double>(tokens)};
}

CacheCost Cost(const RuntimeSpec& runtime, const MethodContext& context, int64_t tokens) {
  if (runtime.as_chosen)
    return ChoiceCost(context, context.options().windows, tokens,
                      [&](size_t i) { return ChosenFor(runtime, context, i); });
  const std::vector<LayerSpec>& layers = context.layers();
  return MeanOverCache(layers, 1, [&](size_t i, bool keys) {
    const AttentionSpec& spec = layers[i].attention;
    const int64_t dim = keys ? spec.head_dim : spec.v_head_dim;
    const CacheCost side = IsNative(runtime, i, layers.size())
                               ? CacheCost{kKeptBits, kKeptBits}
                               : SideCost(runtime, context, dim, tokens);
    const auto row = static_cast<double>(spec.num_kv_heads * dim);
    return CacheCost{row * side.paper, row * side.actual};
  });
}

bool IsAvailable(const RuntimeSpec& runtime, const MethodContext& context) {
  for (const LayerSpec& layer : context.layers()) {
    if (!CodecTakes(runtime, layer.attention)) return false;
  }
  if (runtime.chosen) return !ServedChoice(runtime, context.artifact()).empty();
  return runtime.per_head ? HasPerHeadRotations(context)
                          : HasStoredRotations(RotationGrouping::kShared)(context);
}

}  // namespace

CacheMethod RuntimeMethod(const RuntimeSpec& runtime) {
  return {
      .name = runtime.method,
      .description = runtime.description,
      .takes_clip = false,
      .takes_windows = false,
      .why_no_latents = "the files that it loads store keys and values separately",
      .make = [&runtime](const MethodContext& context, size_t layer_index,
                         const ArmOptions&) { return MakeCache(runtime, context, layer_index); },
      .cost = [&runtime](const MethodContext& context, const ArmOptions&,
                         int64_t tokens) { return Cost(runtime, context, tokens); },
      .available =
          [&runtime](const MethodContext& context) { return IsAvailable(runtime, context); }};
}

}  // namespace oscar
