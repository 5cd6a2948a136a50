// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// gpt-oss 20B and 120B: biases everywhere, an extra softmax logit per head (sink), every other
// layer slides, experts stored transposed with gate and up alternating. hidden_act says silu, but
// the experts compute a clamped gate with a sigmoid of swiglu_alpha times it.
#include "capture/model/families/experts_config.h"

namespace oscar {

ModelSpec ReadGptOss(ConfigReader& config) {
  if (config.Find("rope_parameters") == nullptr && config.Find("rope_scaling") == nullptr)
    config.Fail("rope_parameters", "is missing, and is no plain embedding in this family");
  constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", true);
  options.default_head_dim = 64;
  options.rope.default_theta = 150000.0;
  options.dense_mlp = false;
  const auto every_other = [&](int64_t layer) { return layer % 2 == 0 ? kSliding : kFull; };
  config.Default("sliding_window", 128);
  options.windows = WindowsOf(config, ReadLayerTypes(config, {kFull, kSliding}, every_other),
                              config.OptionalSize("sliding_window"));
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers)
    layer.attention.sinks = config.LayerPrefix(layer.layer_id) + "self_attn.sinks";

  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"), "mlp.router");
  experts.router.logits.bias = "mlp.router.bias";
  experts.router.score = RouterScore::kChosenSoftmax;
  ClampedGate gate;
  gate.alpha = config.OptionalPositive("swiglu_alpha").value_or(gate.alpha);
  gate.limit = config.OptionalPositive("swiglu_limit").value_or(gate.limit);
  experts.clamped_gate = gate;
  experts.fused = experts.transposed = experts.interleaved = true;
  experts.gate_up = "mlp.experts.gate_up_proj";
  experts.gate_up_bias = "mlp.experts.gate_up_proj_bias";
  experts.down = "mlp.experts.down_proj";
  experts.down_bias = "mlp.experts.down_proj_bias";
  PutExperts(config, experts, std::vector<bool>(spec.layers.size(), true), spec);
  config.Require("experts_per_token", experts.router.top_k);  // a second name of it
  (void)config.Find("initial_context_length");  // repeats the original context of rope_scaling
  return spec;
}

}  // namespace oscar
