// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model as data: every layer's geometry, arithmetic and tensor names, so that one generic decoder
// layer runs every family. Trap: no default here may mean "unknown". A config field that changes
// the mathematics but is not represented below is refused before any weight is read.
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

// Softmax attention over keys and values in a cache. Only some families use the fields from v_norm
// on.
struct AttentionSpec {
  int64_t num_q_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0, v_head_dim = 0;
  double scale = 0;               // factor on q·k
  std::optional<int64_t> window;  // W: query i sees keys i-W+1 .. i; absent: 0 .. i
  // Whether q and k are normalized, before rope unless norm_after_rope is set. Each head is
  // normalized separately, or all heads together if the norm's size covers all heads.
  bool qk_norm = false;
  RopeSpec rope;
  LinearSpec q, k, v, o;
  NormSpec q_norm, k_norm;  // used if qk_norm

  NormSpec v_norm = {};    // for each head of v
  double v_scale = 1;      // factor on v
  bool v_from_k = false;   // v is k's projection, before k's norm and rope
  double softcap = 0;      // c: a scaled logit x becomes c tanh(x / c); 0: no cap
  std::string sinks = {};  // tensor name; [num_q_heads]: logits of a key without value; "": none
  std::vector<float> sink_logits = {};  // values of the sinks, if read with a checkpoint
  bool gated = false;    // q's projection gives [query | gate] for each head and so has twice the
                         // rows; o gets attn_out * sigmoid(gate)
  LinearSpec gate = {};  // the same gate with a separate projection; one value per head or per
                         // channel
  bool gate_softplus = false;    // softplus(gate) instead of sigmoid(gate)
  NormSpec out_norm = {};        // for attn_out, all heads together, before o
  bool norm_after_rope = false;  // applies qk_norm after rope instead of before it
  double clamp = 0;              // c: clips q, k and v to -c .. c before rope; 0: no clipping
  // q is multiplied by 1 + beta ln(1 + floor((position + offset) / period)).
  double position_beta = 0;
  int64_t position_period = 0, position_offset = 0;
  std::optional<int> shared_kv = {};  // layer_id of another layer, whose keys and values it reads
  // If set, queries, keys and values come from latents, and q, k, v above do not exist. The
  // geometry above is that of the expanded heads, although the cache holds the latent.
  std::optional<LatentSpec> latent = {};
  // The result of WhyNotFoldable for the original model, if there is only a dump of it.
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
// A missing norm is the identity.
struct LayerSpec {
  int layer_id = 0;  // layer number in the checkpoint
  NormSpec attention_norm;
  AttentionSpec attention;
  NormSpec mlp_norm;
  MlpSpec mlp;

  NormSpec post_attention_norm = {}, post_mlp_norm = {};
  double residual_multiplier = 1;  // m
  bool parallel = false;    // the MLP gets the same x as attention, after mlp_norm or, without that
                            // norm, after attention_norm
  std::string scalar = {};  // tensor name; [1], or "" for none
  std::optional<PerLayerInputSpec> per_layer_input = {};

  // Replaces the MLP or, if the layer has both, runs in parallel with it. In the latter case,
  // post_mlp_norm gets mlp_out_norm(mlp(mlp_norm(x))) +
  // experts_out_norm(experts(experts_in_norm(x))).
  std::optional<ExpertsSpec> experts = {};
  NormSpec mlp_out_norm = {}, experts_in_norm = {}, experts_out_norm = {};
  // Replaces attention; such a layer has no cache.
  std::optional<GatedDeltaNetSpec> delta_net = {};

  // Whether the layer stores its own keys and values in a cache.
  bool has_cache() const { return attention.num_kv_heads > 0 && !attention.shared_kv; }
};

// The additional input of each layer. For token t and layer i, these are dim values:
// (norm(projection(embedding(t)) * projection_scale)[i] + table[t][i] * table_scale) * sum_scale
struct PerLayerInputsSpec {
  std::string table;  // tensor name; [vocab_size, num_layers * dim]
  int64_t vocab_size = 0, dim = 0, num_layers = 0;
  double table_scale = 1, projection_scale = 1, sum_scale = 1;
  LinearSpec projection;  // [num_layers * dim, hidden_size]
  NormSpec norm;          // [dim]
};

// Names of config.json fields without effect here.
struct FieldNotes {
  std::vector<std::string> unknown = {};  // unknown to all tables, but accepted by UnknownConfig
  std::vector<std::string> unread = {};   // stored by transformers for this family, but never read
};

struct ModelSpec {
  std::string model_type;  // "qwen3"
  int64_t hidden_size = 0, vocab_size = 0;
  int64_t max_positions = 0;                                // tokens; longer sequences are refused
  std::string positions_limit = "max_position_embeddings";  // the field with that limit
  double rms_norm_eps = 0;                                  // for every norm
  std::string embedding;                // tensor name; [vocab_size, hidden_size]
  std::string position_embedding = {};  // tensor name; [max_positions, hidden_size], added to each
                                        // token's embedding by position; "": none
  NormSpec final_norm;
  LinearSpec head;  // head.weight == embedding if tied
  bool tied_head = false;
  // Layers with their own KV cache, by layer_id. Only these are observed and get rotations. A
  // "layer index" is always an index into this list.
  std::vector<LayerSpec> layers;
  std::vector<LayerSpec> uncached;  // other layers, by layer_id; they run in order, unobserved
  std::string config_dtype;         // "bfloat16"; "" if missing
  std::string rope_description;     // DescribeRope for the layers
  // Stored tensors with these suffixes or prefixes are valid but unused.
  std::vector<std::string> skipped_suffixes, skipped_prefixes;
  FieldNotes fields;

  double embedding_multiplier = 1;
  bool round_embedding_multiplier = false;  // rounds it to the compute dtype first (Gemma)
  double logit_multiplier = 1;
  double logit_softcap = 0;  // c: a logit x becomes c tanh(x / c) after the multiplier; 0: none
  std::optional<PerLayerInputsSpec> per_layer_inputs = {};
};

// Returns why scales of keys and rotations of values cannot be folded into this attention's weights
// ("its values are normalized"), or "" if they can.
std::string WhyNotFoldable(const AttentionSpec& attention);

// Returns the index of the layer with this id among the layers with a cache.
size_t IndexOfLayer(const ModelSpec& spec, int layer_id);

// Returns all layers in the order in which they run.
std::vector<const LayerSpec*> AllLayers(const ModelSpec& spec);
// Returns the layers that run for one layer index: the layer itself, the uncached layers between it
// and the next layer with a cache and, for the first index, the uncached layers before it.
std::vector<const LayerSpec*> StepLayers(const ModelSpec& spec, size_t layer_index);

struct SpecOptions {
  // How to treat a field that is in no table. A field that is known to matter is never accepted.
  UnknownConfig unknown_config = UnknownConfig::kCheck;
  // Releases of one family may use different tensor names (prefixes of multimodal wrappers, fused
  // experts). The checkpoint's tensor names decide which; null: the family's usual names.
  const Checkpoint* checkpoint = nullptr;
};

// Reads config.json as written by original releases or by transformers 5. Throws InputError naming
// `what` and the field if anything is missing, nonsensical, unknown or not implemented. The message
// lists what is supported.
ModelSpec ReadModelSpec(const Json& config, const SpecOptions& options = {},
                        std::string_view what = "config.json");
// Reads config.json in a directory. If the directory has weights, uses their tensor names.
ModelSpec ReadModelSpec(const std::filesystem::path& model_directory,
                        const SpecOptions& options = {});

// Returns the sorted names of the model families that ReadModelSpec accepts.
std::vector<std::string> SupportedModelTypes();

// Returns the tensors of one layer; with `attention_only`, only those for q, k, v.
std::vector<TensorNeed> LayerTensors(const LayerSpec& layer, bool attention_only = false);
std::vector<TensorNeed> AllTensors(const ModelSpec& spec);  // embedding, layers, final norm, head

// Checks that every required tensor is present with the right shape, plain or in a supported weight
// format, and that every stored tensor is used or on a skip list. Throws InputError naming the
// first few tensors for which this is not so.
void CheckTensors(const ModelSpec& spec, const Checkpoint& checkpoint);

// Returns the type of most bytes in the layers. If weights are quantized, only tensors that are not
// quantized count, and the embedding is included.
DType StoredDType(const ModelSpec& spec, const Checkpoint& checkpoint);

// Returns "BF16" or, for quantized weights, "gptq 4-bit; F16", with the most bytes first.
std::string DescribeStorage(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace oscar
