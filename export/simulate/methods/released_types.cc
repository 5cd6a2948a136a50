// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// 8- and 4-bit types in which released servers store a cache without our files, in addition to the
// 8-bit floats of float8.cc. llama.cpp (--cache-type-k, --cache-type-v) stores a 16-bit scale for
// every 32 values of a token, whose KV heads form one row (ggml-quants.c, quantize_row_q8_0_ref and
// quantize_row_q4_0_ref). LMDeploy (quant_policy 8 and 4) stores a 16-bit scale and offset for each
// token and head.
#include <ATen/ATen.h>

#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

constexpr int64_t kLlamaBlock = 32;  // values

// Multiplies blocks [..., 32] by the inverse of their scale [..., 1], or by 0 if the scale is 0.
at::Tensor Scaled(const at::Tensor& blocks, const at::Tensor& scale) {
  return blocks * at::where(scale != 0, scale.reciprocal(), 0);
}

// Returns blocks as read back. Codes are made with the exact scale and read with its float16 value.
at::Tensor Q8Blocks(const at::Tensor& blocks) {
  const at::Tensor scale = DividedBy(blocks.abs().amax(-1, true), 127);
  const at::Tensor scaled = Scaled(blocks, scale);
  const at::Tensor codes = scaled.sign() * scaled.abs().add(0.5).floor();  // roundf
  return codes * RoundTo(scale, StoredFloat::kFloat16);
}

// Uses a signed scale: the value with the largest magnitude becomes -8 times the scale.
at::Tensor Q4Blocks(const at::Tensor& blocks) {
  const at::Tensor scale = blocks.gather(-1, blocks.abs().argmax(-1, true)).div(-8);
  const at::Tensor codes = Scaled(blocks, scale).add(8.5).floor().clamp_max(15);
  return (codes - 8) * RoundTo(scale, StoredFloat::kFloat16);
}

CacheMethod LlamaMethod(std::string_view name, std::string_view description, int bits,
                        at::Tensor (*round_trip)(const at::Tensor& blocks)) {
  const RotatedQuantizer side{.codec = [round_trip](const at::Tensor& rows) {
    const at::Tensor tokens = rows.permute({1, 0, 2}).contiguous();  // [tokens, num_kv_heads, dim]
    return round_trip(tokens.view({tokens.size(0), -1, kLlamaBlock}))
        .view(tokens.sizes())
        .permute({1, 0, 2})
        .contiguous();
  }};
  CacheMethod method = TokenMethod(
      name, description,
      [side](const MethodContext&, size_t) {
        return RotatedSides{side, side};
      },
      AffineCost({.bits = static_cast<double>(bits),
                  .metadata_bits = 16,
                  .actual_metadata_bits = 16,
                  .quant_group_size = kLlamaBlock}));
  method.takes_bf16 = false;
  method.available = [](const MethodContext& context) {
    for (const LayerSpec& layer : context.layers()) {
      const AttentionSpec& spec = layer.attention;
      for (const int64_t dim : {spec.head_dim, spec.v_head_dim})
        if (spec.num_kv_heads * dim % kLlamaBlock != 0) return false;
    }
    return true;
  };
  return method;
}

CacheMethod LmdeployMethod(std::string_view name, std::string_view description, int bits) {
  const AffineRule rule{
      .family = AffineFamily::kMinOffset, .bits = bits, .metadata = StoredFloat::kFloat16};
  const RotatedQuantizer side{.codec = [rule](const at::Tensor& rows) {
    return AffineFamilyRoundTrip(rows, rule, rows.size(-1));
  }};
  CacheMethod method = TokenMethod(
      name, description,
      [side](const MethodContext&, size_t) {
        return RotatedSides{side, side};
      },
      AffineCost({.bits = static_cast<double>(bits),
                  .actual_metadata_bits = 32,
                  .quant_group_size = kWholeHead}));
  method.takes_bf16 = false;
  return method;
}

}  // namespace

std::vector<CacheMethod> ReleasedTypeMethods() {
  return {LlamaMethod("llama_q8_0", "llama.cpp's q8_0: blocks of 32 values, 8 bits", 8, Q8Blocks),
          LlamaMethod("llama_q4_0", "llama.cpp's q4_0: blocks of 32 values, 4 bits", 4, Q4Blocks),
          LmdeployMethod("lmdeploy_int8", "LMDeploy's INT8: per token and head, 8 bits", 8),
          LmdeployMethod("lmdeploy_int4", "LMDeploy's INT4: per token and head, 4 bits", 4)};
}

}  // namespace oscar
