// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model as data: every layer's geometry, arithmetic and tensor names, so that one generic decoder
// layer runs every family. Trap: nothing here has a default that stands for "not looked at". A
// config field that changes the mathematics and is not represented below is refused while reading,
// before any weight is touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/rope_spec.h"

namespace oscar {

// y = x Wᵀ + b
struct LinearSpec {
  std::string weight;  // tensor name; [out_features, in_features]
  std::string bias;    // tensor name; [out_features], or "" for none
  int64_t in_features = 0, out_features = 0;
};

// RMSNorm with a plain weight.
struct NormSpec {
  std::string weight;  // tensor name; [size]
  int64_t size = 0;
};

struct AttentionSpec {
  int64_t num_q_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0, v_head_dim = 0;
  double scale = 0;               // factor on q·k
  std::optional<int64_t> window;  // W: query i sees keys i-W+1 .. i; absent: 0 .. i
  bool qk_norm = false;           // RMSNorm over head_dim of each q and k head, before rope
  RopeSpec rope;
  LinearSpec q, k, v, o;
  NormSpec q_norm, k_norm;  // used if qk_norm

  int64_t gqa_ratio() const { return num_q_heads / num_kv_heads; }  // query heads per KV head
};

enum class Activation { kSilu };

// down(activation(gate(x)) * up(x))
struct MlpSpec {
  int64_t intermediate_size = 0;
  Activation activation = Activation::kSilu;
  LinearSpec gate, up, down;
};

// x += o(attention(norm(x))); x += mlp(norm(x))
struct LayerSpec {
  int layer_id = 0;  // the checkpoint's own number
  NormSpec attention_norm;
  AttentionSpec attention;
  NormSpec mlp_norm;
  MlpSpec mlp;
};

struct ModelSpec {
  std::string model_type;  // "qwen3"
  int64_t hidden_size = 0, vocab_size = 0;
  int64_t max_positions = 0;  // tokens; longer sequences are refused
  double rms_norm_eps = 0;
  std::string embedding;  // tensor name; [vocab_size, hidden_size]
  NormSpec final_norm;
  LinearSpec head;  // head.weight == embedding if tied
  bool tied_head = false;
  std::vector<LayerSpec> layers;
  std::string config_dtype;      // as the config says: "bfloat16", or "" if it does not
  std::string rope_description;  // DescribeRope of the layers
  std::vector<std::string>
      skipped_suffixes;  // stored tensors with such an ending are legitimate and unused
  std::vector<std::string> ignored_config;  // unknown fields let through by allow_unknown_config
};

struct SpecOptions {
  bool allow_unknown_config =
      false;  // lets a field pass that no table knows; a field known to matter never passes
};

// Reads config.json in either spelling. InputError naming `what` and the field for everything
// missing, nonsensical, unknown or not implemented, with the list of what is supported.
ModelSpec ReadModelSpec(const Json& config, const SpecOptions& options = {},
                        std::string_view what = "config.json");
ModelSpec ReadModelSpec(const std::filesystem::path& model_directory,
                        const SpecOptions& options = {});

// Names of the model families that ReadModelSpec accepts, sorted.
std::vector<std::string> SupportedModelTypes();

// A tensor the model needs.
struct TensorNeed {
  std::string name;
  std::vector<int64_t> shape;
};
// Of one layer; `attention_only`: no more than q, k, v need.
std::vector<TensorNeed> LayerTensors(const LayerSpec& layer, bool attention_only = false);
std::vector<TensorNeed> AllTensors(const ModelSpec& spec);  // embedding, layers, final norm, head

// Every needed tensor is present with the right shape in BF16, F16 or F32, and every stored one is
// needed or on the family's skip list: InputError naming the first few that are not. Reads no
// weight.
void CheckTensors(const ModelSpec& spec, const Checkpoint& checkpoint);

// The type most bytes of the layers are stored in.
DType StoredDType(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace oscar
