// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See auto_options.h.
#include "calib/auto_options.h"

#include "linalg/check.h"

namespace oscar {

const std::vector<ConsumerRules>& AllConsumers() {
  static const std::vector<ConsumerRules> consumers = {
      {Consumer::kAny, "any", true, true, true, ClipScope::kHead, true, /*latents=*/true},
      // Format version 1: one rotation per layer; ratios are environment variables of the server.
      {Consumer::kSglang, "sglang", false, false, false, ClipScope::kSide, false},
      // Format versions 2 and 3: per head, k_mean, q_rotation. A directory of latents' matrices.
      {Consumer::kSglangOct, "sglang-oct", true, true, true, ClipScope::kSide, false,
       /*latents=*/true},
      {Consumer::kVllm, "vllm", false, false, false, ClipScope::kSide, false},
      // attn_k_rot and attn_v_rot in a GGUF; LLAMA_KV_CLIP_RATIO serves both sides.
      {Consumer::kLlamacpp, "llamacpp", false, false, false, ClipScope::kModel, false},
      // R_K and R_V [num_kv_heads, d, d], orthogonal; the ratio is an attribute of the layer's
      // node.
      {Consumer::kOnnx, "onnx", true, false, false, ClipScope::kLayer, false},
  };
  return consumers;
}

const ConsumerRules& RulesOf(Consumer consumer) {
  for (const ConsumerRules& rules : AllConsumers()) {
    if (rules.consumer == consumer) return rules;
  }
  OSCAR_CHECK(!"a consumer without rules");
  return AllConsumers().front();
}

}  // namespace oscar
