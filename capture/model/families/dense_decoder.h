// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the fields and tensor names that most decoder families share. A family declares its
// differences in DenseDecoderOptions or changes the layers afterwards. Trap: head_dim is often not
// hidden_size / num_attention_heads.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/model/families/families.h"
#include "capture/model/spec/config_reader.h"
#include "capture/model/spec/model_spec.h"
#include "capture/model/spec/rope_config.h"

namespace oscar {

// Tensor names of a layer's norms, without ".weight"; "" for none.
struct LayerNormNames {
  std::string attention = "input_layernorm", post_attention = "";
  std::string mlp = "post_attention_layernorm", post_mlp = "";
};
// Names of the two norms in Olmo and EXAONE 4, on the outputs of attention and MLP.
LayerNormNames PostNorms();

using Windows = std::vector<std::optional<int64_t>>;  // per layer; absent: no window

struct DenseDecoderOptions {
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qk_norm = false;
  bool qk_norm_of_all_heads = false;  // one norm across all heads
  std::string q_norm_name = "q_norm", k_norm_name = "k_norm";
  NormKind norm = NormKind::kPlain;  // for all norms
  bool norm_bias = false, norm_weight = true;
  LayerNormNames norms = {};
  std::optional<int64_t> default_head_dim =
      {};  // if the config has none; absent: hidden_size / num_attention_heads
  RopeOptions rope = {};
  std::optional<RopeOptions> sliding_rope = {};  // for layers with a window; absent: `rope`
  Windows windows = {};                          // empty: no layer has a window
  std::optional<double> scale = {};              // factor on q·k; absent: 1 / sqrt(head_dim)
  std::string eps_field = "rms_norm_eps", activation_field = "hidden_act";
  std::string default_activation = "silu";
  bool tied_by_default = false;                   // applies if the config does not say
  bool gated_mlp = true;                          // false: only up and down projections
  bool dense_mlp = true;                          // false: the family adds its own replacement
  bool fused_qkv = false, fused_gate_up = false;  // stored as qkv_proj and as gate_up_proj
};

// Options for most descendants of Llama: attention_bias says whether q, k, v and o have biases, and
// the rope base has a default.
DenseDecoderOptions LlamaOptions(ConfigReader& config, std::optional<double> default_theta = {});

ModelSpec ReadDenseDecoder(ConfigReader& config, const DenseDecoderOptions& options);

// Refuses a config without rope settings, for a family that never uses plain rope.
void RequireRopeSettings(ConfigReader& config);

// Returns a projection with weight name + ".weight" and, if `bias`, name + ".bias".
LinearSpec Linear(const std::string& name, int64_t in_features, int64_t out_features,
                  bool bias = false);
// Returns a projection whose weight is rows [first, first + part) of a stored tensor with `all`
// rows.
LinearSpec Rows(const std::string& name, int64_t in_features, int64_t first, int64_t part,
                int64_t all, bool bias = false);
// Reads the activation in a field ("silu", "gelu_pytorch_tanh", ...); never kXielu.
Activation ReadActivation(ConfigReader& config, std::string_view field,
                          std::string_view default_name);
// Returns the usual gate, up and down under a prefix ("model.layers.3.mlp.").
MlpSpec DenseMlp(const std::string& prefix, int64_t hidden_size, int64_t intermediate_size,
                 const DenseDecoderOptions& options, Activation activation);
// Sets other names (without ".weight") for the embedding, the final norm and a separate head.
void NameEnds(const std::string& embedding, const std::string& final_norm, ModelSpec& spec,
              const std::string& head = "lm_head");
int64_t ReadNumLayers(ConfigReader& config);

// Returns the kind of each layer: from layer_types or, if the config has no such field, from
// `otherwise`.
std::vector<std::string> ReadLayerTypes(
    ConfigReader& config, std::initializer_list<std::string_view> supported,
    const std::function<std::string_view(int64_t layer)>& otherwise);
// Returns the windows for these layer kinds. Throws InputError if a sliding-window layer has no
// window.
Windows WindowsOf(const ConfigReader& config, const std::vector<std::string>& types,
                  std::optional<int64_t> window);
bool AnySlides(const Windows& windows);

// Reads sliding_window, or `missing` if the config has no such field; null: no layer has a window.
std::optional<int64_t> ReadWindow(ConfigReader& config, std::optional<int64_t> missing = {});
// Gives all layers the same window, for families whose layer_types transformers ignores. Throws
// InputError if layer_types contradicts that.
Windows ReadUniformWindows(ConfigReader& config, std::optional<int64_t> window);
// Layer i has the window if layer_types says so or, without layer_types, if slides(i).
Windows ReadWindows(ConfigReader& config, std::optional<int64_t> window,
                    const std::function<bool(int64_t layer)>& slides);
// Without layer_types, layers from first_sliding on have the window.
Windows ReadWindows(ConfigReader& config, std::optional<int64_t> window, int64_t first_sliding);
// Without layer_types, every `pattern`-th layer has full attention; all others have the window.
Windows ReadPatternWindows(ConfigReader& config, std::optional<int64_t> window, int64_t pattern);

}  // namespace oscar
