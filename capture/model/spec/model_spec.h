// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model as data: every layer's geometry, arithmetic and tensor names, so that one generic decoder
// layer runs every family. Trap: no default here may mean "not looked at". A config field that
// changes the mathematics and is not represented below is refused while reading, before any weight
// is touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/config_fields.h"
#include "capture/model/spec/delta_net_spec.h"
#include "capture/model/spec/experts_spec.h"
#include "capture/model/spec/latent_spec.h"
#include "capture/model/spec/linear_spec.h"
#include "capture/model/spec/rope_spec.h"

namespace oscar {

// Softmax attention over keys and values in a cache. Only some families use the second
// part.
struct AttentionSpec {
  int64_t num_q_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0, v_head_dim = 0;
  double scale = 0;               // factor on q·k
  std::optional<int64_t> window;  // W: query i sees keys i-W+1 .. i; absent: 0 .. i
  // Whether q and k are normalized before rope: each head by itself, or all heads together if the
  // norm has the size of all heads.
  bool qk_norm = false;
  RopeSpec rope;
  LinearSpec q, k, v, o;
  NormSpec q_norm, k_norm;  // used if qk_norm

  NormSpec v_norm = {};    // of each head of v
  double v_scale = 1;      // factor on v
  bool v_from_k = false;   // v is the output of k's projection, before k's norm and rope
  double softcap = 0;      // c: a scaled logit x becomes c tanh(x / c); 0: there is none
  std::string sinks = {};  // tensor name; [num_q_heads]: logits of a key without value; "": none
  std::vector<float> sink_logits = {};  // their values, if the spec was read with a checkpoint
  bool gated = false;    // q's projection gives [query | gate] of each head, so it has twice the
                         // rows; o sees attn_out * sigmoid(gate)
  LinearSpec gate = {};  // the same gate with its own projection; one value per head or per
                         // channel
  bool gate_softplus = false;    // softplus(gate) instead of its sigmoid
  NormSpec out_norm = {};        // of attn_out, all heads together, before o
  bool norm_after_rope = false;  // applies qk_norm after rope instead of before it
  double clamp = 0;              // c: q, k and v, before rope, are cut to -c .. c; 0: they are not
  // q is multiplied by 1 + beta ln(1 + floor((position + offset) / period)).
  double position_beta = 0;
  int64_t position_period = 0, position_offset = 0;
  std::optional<int> shared_kv = {};  // layer_id whose keys and values it reads; it has none itself
  // Queries, keys and values come from latents, and q, k, v above do not exist. The geometry above
  // is that of the expanded heads, but a cache holds the latent.
  std::optional<LatentSpec> latent = {};
  // The result of WhyNotFoldable for the model, if only a dump of it is left.
  std::optional<std::string> not_foldable = {};

  int64_t gqa_ratio() const { return num_q_heads / num_kv_heads; }  // query heads per KV head
};

// x += post_norm(projection(activation(gate(x)) * input)), where `input` is the layer's part of
// PerLayerInputsSpec (Gemma's "per-layer embeddings").
struct PerLayerInputSpec {
  LinearSpec gate, projection;  // hidden_size to dim, and back
  NormSpec post_norm;
  Activation activation = Activation::kGeluTanh;
};

// x += m * post_attention_norm(o(attention(attention_norm(x))));
// x += m * post_mlp_norm(mlp(mlp_norm(x)));  x *= scalar
// A norm that does not exist returns its input.
struct LayerSpec {
  int layer_id = 0;  // the checkpoint's own number
  NormSpec attention_norm;
  AttentionSpec attention;
  NormSpec mlp_norm;
  MlpSpec mlp;

  NormSpec post_attention_norm = {}, post_mlp_norm = {};
  double residual_multiplier = 1;  // m
  bool parallel = false;    // the MLP sees the same x, through mlp_norm where that exists, else
                            // through attention_norm
  std::string scalar = {};  // tensor name; [1], or "" for none
  std::optional<PerLayerInputSpec> per_layer_input = {};

  // Instead of the MLP, or in parallel if the layer has both. Then post_mlp_norm gets
  // mlp_out_norm(mlp(mlp_norm(x))) + experts_out_norm(experts(experts_in_norm(x))).
  std::optional<ExpertsSpec> experts = {};
  NormSpec mlp_out_norm = {}, experts_in_norm = {}, experts_out_norm = {};
  // Replaces attention; such a layer has no cache.
  std::optional<GatedDeltaNetSpec> delta_net = {};

  // Whether the layer stores its own keys and values in a cache.
  bool has_cache() const { return attention.num_kv_heads > 0 && !attention.shared_kv; }
};

// The additional input of each layer: for token t and layer i, of dim values,
// (norm(projection(embedding(t)) * projection_scale)[i] + table[t][i] * table_scale) * sum_scale
struct PerLayerInputsSpec {
  std::string table;  // tensor name; [vocab_size, num_layers * dim]
  int64_t vocab_size = 0, dim = 0, num_layers = 0;
  double table_scale = 1, projection_scale = 1, sum_scale = 1;
  LinearSpec projection;  // [num_layers * dim, hidden_size]
  NormSpec norm;          // [dim]
};

// Names of fields of config.json that have no effect here.
struct FieldNotes {
  std::vector<std::string> unknown = {};  // unknown to all tables, and allowed by UnknownConfig
  std::vector<std::string> unread = {};   // stored by transformers for the family, but never read
};

struct ModelSpec {
  std::string model_type;  // "qwen3"
  int64_t hidden_size = 0, vocab_size = 0;
  int64_t max_positions = 0;                                // tokens; longer sequences are refused
  std::string positions_limit = "max_position_embeddings";  // the source of that limit
  double rms_norm_eps = 0;                                  // of every norm
  std::string embedding;                // tensor name; [vocab_size, hidden_size]
  std::string position_embedding = {};  // tensor name; [max_positions, hidden_size], added to the
                                        // embedding of each token by its position; "" for none
  NormSpec final_norm;
  LinearSpec head;  // head.weight == embedding if tied
  bool tied_head = false;
  // Layers with their own KV cache, by layer_id: observers see them and they get rotations. "Layer
  // index" always means an index into this list.
  std::vector<LayerSpec> layers;
  std::vector<LayerSpec> uncached;  // the others, by layer_id; they run in their place, unobserved
  std::string config_dtype;         // from the config: "bfloat16", or "" if missing
  std::string rope_description;     // DescribeRope of the layers
  // Stored tensors with these suffixes or prefixes are legitimate and unused.
  std::vector<std::string> skipped_suffixes, skipped_prefixes;
  FieldNotes fields;

  double embedding_multiplier = 1;
  bool round_embedding_multiplier = false;  // to the compute dtype, before it is applied (Gemma)
  double logit_multiplier = 1;
  double logit_softcap = 0;  // c: a logit x becomes c tanh(x / c), after the multiplier; 0: none
  std::optional<PerLayerInputsSpec> per_layer_inputs = {};
};

// Why scales of keys and rotations of values cannot be folded into this attention's weights ("its
// values come out of the projection of keys"), or "" if they can.
std::string WhyNotFoldable(const AttentionSpec& attention);

// The index of the layer with this id among the layers with a cache.
size_t IndexOfLayer(const ModelSpec& spec, int layer_id);

// All layers in the order they run.
std::vector<const LayerSpec*> AllLayers(const ModelSpec& spec);
// The layers that run for one layer index: the layer itself, the uncached ones that follow it, and,
// for the first, those before it.
std::vector<const LayerSpec*> StepLayers(const ModelSpec& spec, size_t layer_index);

struct SpecOptions {
  // How to treat a field that no table knows; a field known to matter never passes.
  UnknownConfig unknown_config = UnknownConfig::kCheck;
  // Its tensor names decide if releases of one family use different ones (prefixes of multimodal
  // wrappers, fused experts); null: the family's usual names.
  const Checkpoint* checkpoint = nullptr;
};

// Reads config.json in either spelling. Throws InputError naming `what` and the field for anything
// missing, nonsensical, unknown or not implemented, with the list of what is supported.
ModelSpec ReadModelSpec(const Json& config, const SpecOptions& options = {},
                        std::string_view what = "config.json");
// Reads the config of a directory, and uses its tensor names, if it has any.
ModelSpec ReadModelSpec(const std::filesystem::path& model_directory,
                        const SpecOptions& options = {});

// Names of the model families that ReadModelSpec accepts, sorted.
std::vector<std::string> SupportedModelTypes();

// The tensors of one layer; `attention_only`: only those that q, k, v need.
std::vector<TensorNeed> LayerTensors(const LayerSpec& layer, bool attention_only = false);
std::vector<TensorNeed> AllTensors(const ModelSpec& spec);  // embedding, layers, final norm, head

// Checks that every needed tensor is present with the right shape, plain or in a supported weight
// format, and that every stored one is used or on a skip list. Throws InputError naming the first
// few that are not.
void CheckTensors(const ModelSpec& spec, const Checkpoint& checkpoint);

// The plain type of most bytes of the layers; if weights are quantized, that of the
// others.
DType StoredDType(const ModelSpec& spec, const Checkpoint& checkpoint);

// "BF16", or for quantized weights "gptq 4-bit; F16": most bytes first.
std::string DescribeStorage(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace oscar
