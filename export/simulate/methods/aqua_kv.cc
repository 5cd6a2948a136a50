// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// AQUA-KV (arXiv 2501.19392, section 3; goodevening13/aquakv). Linear regression predicts keys
// before rope from the previous layer's keys, and values from that layer's values and their own
// keys. The regression's inputs are rows as read back from the cache. HIGGS rounds the residuals to
// 2 bits, and the rows of the first layer to 4 bits. The first 4 tokens stay exact. Later tokens
// stay exact until 128 of them are quantized at once.
//
// The method `predicted` rounds the residuals as OSCAR does: with rotations, scales fitted to the
// codes and stored in a byte, and error feedback of keys. It uses the arm's windows.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/higgs_tensor.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rope_rows.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/token_blocks.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kAquaSink = 4, kAquaBlock = 128;      // tokens
constexpr int64_t kAquaFirst = 256, kAquaEntries = 16;  // grid entries: first layer, others
constexpr double kAquaDamping = 1e-3;                   // ridge: fraction of the mean diagonal
constexpr int kFirstBits = 4;                           // first layer: nothing predicts it

// y = [x 1] W, with W [in + 1, out] float64.
struct Predictor {
  at::Tensor weights;

  at::Tensor operator()(const at::Tensor& x) const {  // [tokens, in] float64
    const at::Tensor w = weights.to(x.device());
    return at::matmul(x, w.slice(0, 0, -1)).add_(w.select(0, w.size(0) - 1));
  }
};

at::Tensor Wide(const at::Tensor& rows) { return rows.to(at::kDouble).flatten(1); }

Predictor FitPredictor(const std::vector<at::Tensor>& inputs,
                       const std::vector<at::Tensor>& targets) {
  const at::Tensor y = at::cat(targets), rows = at::cat(inputs);
  const at::Tensor x = at::cat({rows, at::ones({rows.size(0), 1}, rows.options())}, 1);
  const at::Tensor gram = at::matmul(x.t(), x), products = at::matmul(x.t(), y);
  gram.diagonal().add_(gram.diagonal().mean().mul(kAquaDamping));
  return {at::linalg_solve(gram.cpu(), products.cpu())};
}

// Rounds residuals [tokens, channels] float64 and returns them as read back. Keys are before rope.
using Round = std::function<at::Tensor(const at::Tensor& rows)>;
struct Rounding {
  Round k, v;
};
// Makes the functions by which a method rounds a layer's keys and values.
using RoundingOf = Rounding (*)(const MethodContext& context, size_t layer_index);

Rounding AquaRounding(const MethodContext&, size_t layer_index) {
  const Round round = [entries = layer_index == 0 ? kAquaFirst : kAquaEntries](
                          const at::Tensor& rows) { return HiggsRoundTrip(rows, entries); };
  return {round, round};
}

Rounding OurRounding(const MethodContext& context, size_t layer_index) {
  RotatedSides sides = FedPerHeadSides(context, layer_index);
  sides.k.codes.metadata = sides.v.codes.metadata = MetadataType::kByte;
  if (layer_index == 0) sides.k.codes.bits = sides.v.codes.bits = {kFirstBits};
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  // Keys are rounded after rope, where queries multiply them.
  const auto keys = [rope = spec.rope, dim = spec.head_dim,
                     k = std::move(sides.k)](const at::Tensor& rows) mutable {
    const at::Tensor turned = ApplyRope(rows.to(at::kFloat).unflatten(1, {-1, dim}), rope);
    GoTo(turned, k);
    return Wide(UndoRope(RoundTrip(k, turned), rope));
  };
  const auto values = [dim = spec.v_head_dim,
                       v = std::move(sides.v)](const at::Tensor& rows) mutable {
    const at::Tensor heads = rows.to(at::kFloat).unflatten(1, {-1, dim});
    GoTo(heads, v);
    return Wide(RoundTrip(v, heads));
  };
  return {keys, values};
}

at::Tensor RoundResidual(const Round& round, const at::Tensor& rows, const at::Tensor& predicted) {
  return round(rows.sub(predicted)).add_(predicted);
}

// A layer's rows as the method computes them: [tokens, channels] float64, with keys before rope.
struct AquaRows {
  at::Tensor k, v;
};

AquaRows BeforeRope(const CacheSides& rows, const RopeSpec& rope) {
  return {Wide(UndoRope(ComputeRows(rows.k), rope)), Wide(rows.v)};
}

LayerCache PredictingCache() {
  LayerCache cache;
  cache.k_exact = cache.v_exact = ExactUntilBlocksFill(kAquaSink, kAquaBlock, 1);
  return cache;
}

CachedRows AsRead(const CacheSides& rows, const AquaRows& read, const RopeSpec& rope) {
  const at::ScalarType dtype = ResultType(rows.k);
  return {.quantized = {ApplyRope(read.k.to(dtype).view(rows.k.sizes()), rope),
                        read.v.to(dtype).view(rows.v.sizes())}};
}

LayerCache FirstCache(const MethodContext& context, size_t layer_index, RoundingOf rounding) {
  const LayerSpec& layer = context.layers()[layer_index];
  if (layer_index > 0) {
    throw InputError(
        fmt::format("layer {}: the method predicts each layer from the one before, so a single "
                    "layer's cache cannot be made on its own",
                    layer.layer_id));
  }
  LayerCache cache = PredictingCache();
  cache.store = [rope = layer.attention.rope,
                 round = rounding(context, layer_index)](const CacheSides& rows) {
    const AquaRows own = BeforeRope(rows, rope);
    return AsRead(rows, {round.k(own.k), round.v(own.v)}, rope);
  };
  return cache;
}

LayerCache CacheBehind(const MethodContext& context, size_t layer_index, RoundingOf rounding) {
  const Rounding round = rounding(context, layer_index);
  const RopeSpec &rope = context.layers()[layer_index].attention.rope,
                 &rope_before = context.layers()[layer_index - 1].attention.rope;
  const CalibrationRows& rows = context.rows();
  std::vector<AquaRows> own, before;
  std::vector<at::Tensor> k_inputs, k_targets, v_inputs, v_targets;
  for (size_t i = 0; i < rows.k.size(); ++i) {
    own.push_back(BeforeRope({rows.k[i], rows.v[i]}, rope));
    before.push_back(BeforeRope(context.rows_before()[i], rope_before));
    k_inputs.push_back(before[i].k);
    k_targets.push_back(own[i].k);
    v_targets.push_back(own[i].v);
  }
  const Predictor keys = FitPredictor(k_inputs, k_targets);
  for (size_t i = 0; i < own.size(); ++i)
    v_inputs.push_back(
        at::cat({RoundResidual(round.k, own[i].k, keys(before[i].k)), before[i].v}, 1));
  const Predictor values = FitPredictor(v_inputs, v_targets);
  LayerCache cache = PredictingCache();
  cache.otherwise = LayerCache::StoreBehind([=](const CacheSides& sides,
                                                const CacheSides& sides_before) {
    const AquaRows x = BeforeRope(sides, rope), read = BeforeRope(sides_before, rope_before);
    const at::Tensor k = RoundResidual(round.k, x.k, keys(read.k));
    return AsRead(sides, {k, RoundResidual(round.v, x.v, values(at::cat({k, read.v}, 1)))}, rope);
  });
  return cache;
}

CacheCost AquaCost(const std::vector<LayerSpec>& layers, int64_t tokens) {
  return MeanOverCache(layers, tokens, [&](size_t layer_index, bool keys) {
    const AttentionSpec& spec = layers[layer_index].attention;
    const int64_t channels = spec.num_kv_heads * (keys ? spec.head_dim : spec.v_head_dim);
    const double bits = (layer_index == 0 ? 4 : 2) + 16 / static_cast<double>(HiggsGroup(channels));
    const int64_t behind = std::max<int64_t>(0, tokens - kAquaSink);
    const auto of = [&](int64_t quantized) {
      return static_cast<double>(channels) * (static_cast<double>(quantized) * bits +
                                              kKeptBits * static_cast<double>(tokens - quantized));
    };
    return CacheCost{of(behind), of(behind / kAquaBlock * kAquaBlock)};
  });
}

CacheCost OurCost(const MethodContext& context, const ArmOptions& options, int64_t tokens) {
  const CacheWindows windows = options.windows ? context.options().windows : CacheWindows{};
  return MeanOverCache(context.layers(), 1, [&](size_t layer_index, bool keys) {
    const AttentionSpec& spec = context.layers()[layer_index].attention;
    const int64_t dim = keys ? spec.head_dim : spec.v_head_dim;
    const CacheLayout layout{.payload_bits = layer_index == 0 ? double{kFirstBits} : 2.0,
                             .metadata_bits = 16,
                             .actual_metadata_bits = 16,
                             .quant_group_size = dim,
                             .sink_tokens = windows.sink,
                             .recent_tokens = windows.recent};
    const auto row = static_cast<double>(spec.num_kv_heads * dim);
    return CacheCost{row * PaperBitsPerElement(layout, tokens),
                     row * ActualBitsPerElement(layout, tokens)};
  });
}

CacheMethod Predicted(std::string_view name, std::string_view description, RoundingOf rounding,
                      bool windows) {
  return {.name = name,
          .description = description,
          .takes_clip = false,
          .takes_windows = windows,
          .needs_rows = true,
          .reads_layer_before = true,
          .why_no_latents = "it predicts keys and values, and a latent is both",
          .make =
              [=](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
                if (!context.rows_before().empty())
                  return CacheBehind(context, layer_index, rounding);
                LayerCache cache = FirstCache(context, layer_index, rounding);
                if (windows) cache.k_exact = cache.v_exact = ArmWindows(context, options);
                return cache;
              },
          .cost = {}};
}

}  // namespace

std::vector<CacheMethod> AquaKvMethods() {
  CacheMethod aqua =
      Predicted("aqua_kv_2",
                "AQUA-KV: 2 bits for what the previous layer does not predict, 4 bits in layer 0",
                AquaRounding, /*windows=*/false);
  aqua.cost = [](const MethodContext& context, const ArmOptions&, int64_t tokens) {
    return AquaCost(context.layers(), tokens);
  };
  // Reading a token multiplies by both predictors, which takes 6 (KV heads x dim)^2 FLOP.
  CacheMethod ours =
      Predicted("predicted",
                "OSCAR with fitted byte scales and error feedback on what the previous layer does "
                "not predict; reading a token of a layer costs 6 (KV heads x dim)^2 extra FLOP",
                OurRounding, /*windows=*/true);
  ours.as_published = {.windows = true};
  ours.cost = OurCost;
  ours.available = HasFit;
  return {aqua, ours};
}

}  // namespace oscar
