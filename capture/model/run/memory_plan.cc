// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "capture/model/experts/experts_pass.h"
#include "capture/model/run/attention.h"
#include "capture/model/run/dequantize.h"
#include "capture/model/run/device.h"
#include "capture/model/run/embedding.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/run/weight_loader.h"

namespace oscar {
namespace {

// Memory that LibTorch's libraries use from their first computation on (code pages, thread pools,
// MKL buffers). Measured with LibTorch 2.11 on 2 cores, for models of 1 to 1000 MB in f32 and bf16:
// 20 to 75 MiB.
constexpr int64_t kLazyProgramBytes = int64_t{60} << 20;
// The same for a GPU: driver, context, cuBLAS. Measured on an H200 with CUDA 13.0: 450 MiB.
constexpr int64_t kLazyCudaProgramBytes = int64_t{450} << 20;

int64_t Elements(const TensorNeed& need) {
  return std::accumulate(need.shape.begin(), need.shape.end(), int64_t{1}, std::multiplies<>());
}

// A part of a layer that is in memory by itself: the layer without experts, or a run of experts.
struct PartBytes {
  int64_t elements = 0, stored = 0, largest_stored = 0;  // values, bytes, bytes
  int64_t converted = 0;   // stored bytes that are converted to another type
  bool quantized = false;  // some weights must be dequantized
};

// Returns the stored bytes of a tensor as the quantization config implies them, for a checkpoint
// without weights.
int64_t ExpectedBytes(const QuantizationConfig& quantization, const TensorNeed& need) {
  constexpr std::string_view kWeight = ".weight";
  constexpr int64_t kPlainBytes = 2, kScaleBytes = 2;
  const int64_t values = Elements(need);
  const bool expert = need.shape.size() == 3 && !need.name.ends_with(kWeight);
  const bool matrix = need.shape.size() == 2 && need.name.ends_with(kWeight);
  if (!matrix && !expert) return values * kPlainBytes;
  const std::string module =
      matrix ? need.name.substr(0, need.name.size() - kWeight.size()) : need.name;
  const WeightScheme* scheme = quantization.SchemeOf(module);
  if (scheme == nullptr || scheme->format == WeightFormat::kPlain) return values * kPlainBytes;
  const int64_t in_scale =
      std::max<int64_t>(scheme->group_size, 1) * std::max<int64_t>(scheme->block_rows, 1);
  const int64_t per_scale = in_scale > 1 ? in_scale : need.shape.back();
  return values * scheme->bits / 8 + values / per_scale * kScaleBytes;
}

void Add(const TensorNeed& need, const Checkpoint& checkpoint, at::ScalarType dtype,
         PartBytes& bytes) {
  int64_t stored = 0;
  bool plain = true, converts = false;
  if (checkpoint.has_weights()) {
    const WeightStorage storage = FindWeightStorage(checkpoint, need.name);
    stored = static_cast<int64_t>(storage.bytes());
    plain = storage.plain();
    converts = !plain || PartScalarType(storage.parts[0].dtype, need.name) != dtype;
  } else {
    stored = ExpectedBytes(checkpoint.quantization(), need);
    plain = stored == 2 * Elements(need);
    converts = !plain || c10::elementSize(dtype) != 2;
  }
  bytes.elements += Elements(need);
  bytes.stored += stored;
  bytes.largest_stored = std::max(bytes.largest_stored, stored);
  bytes.quantized |= !plain;
  if (converts) bytes.converted += stored;
}

// Returns the parts in reading order; the first is the layer without its experts.
std::vector<PartBytes> MeasureParts(const LayerSpec& layer, const Checkpoint& checkpoint,
                                    bool attention_only, at::ScalarType dtype,
                                    int64_t expert_bytes) {
  LayerSpec without = layer;
  without.experts.reset();
  std::vector<TensorNeed> needs = LayerTensors(without, attention_only);
  if (layer.experts && !attention_only) AppendRouterTensors(*layer.experts, needs);
  std::vector<PartBytes> parts(1);
  for (const TensorNeed& need : needs) Add(need, checkpoint, dtype, parts[0]);
  for (const LinearSpec* linear : {&layer.attention.q, &layer.attention.k, &layer.attention.v})
    if (linear->piece_rows > 0)  // joining the pieces needs a second copy
      parts[0].elements += linear->out_features * linear->in_features;
  if (!layer.experts || attention_only) return parts;

  // All experts have the same size.
  const ExpertsSpec& experts = *layer.experts;
  std::vector<TensorNeed> of_experts;
  AppendExpertTensors(experts, of_experts);
  PartBytes all;
  for (const TensorNeed& need : of_experts) Add(need, checkpoint, dtype, all);
  for (const ExpertRun& run :
       SplitExperts(experts, static_cast<int64_t>(c10::elementSize(dtype)), expert_bytes)) {
    const auto share = [&](int64_t bytes) { return bytes * run.count / experts.num_experts; };
    parts.push_back({share(all.elements), share(all.stored),
                     experts.fused ? share(all.largest_stored) : all.largest_stored,
                     share(all.converted), all.quantized});
  }
  return parts;
}

// Returns how many values stay in memory while a layer's experts are processed: those of its
// router, shared expert and MLP.
int64_t BesideExperts(const LayerSpec& layer) {
  std::vector<TensorNeed> needs;
  AppendRouterTensors(*layer.experts, needs);
  int64_t values = 3 * layer.mlp.intermediate_size * layer.experts->hidden_size;
  for (const TensorNeed& need : needs) values += Elements(need);
  return values;
}

// Returns the bytes that dequantization needs in addition to stored and dense weights.
int64_t DequantizeBytes(at::DeviceType device) {
  return kDequantizeBytesPerValue *
         (device == at::kCPU ? kDequantizeValuesCpu : kDequantizeValuesGpu);
}

// Sizes in bytes for one step of a layer. `element` is the size of the compute dtype.
struct StepBytes {
  int64_t element, hidden_size;
  int64_t step_tokens;   // tokens of one span
  int64_t chunk_tokens;  // tokens of one projection or MLP step
  int64_t longest;       // tokens of the longest sequence
  const LoopOptions& options;

  // Counts q, k, v and attn_out of a span. For the largest attention call, also counts its result
  // and its mask, as booleans and as numbers.
  int64_t Attention(const AttentionSpec& a) const {
    const int64_t q_width = a.num_q_heads * a.head_dim, out_width = a.num_q_heads * a.v_head_dim;
    const int64_t kv_width = a.num_kv_heads * (a.head_dim + a.v_head_dim);
    const int64_t window = std::min(a.window.value_or(longest), longest);
    const bool whole = window == longest && longest <= options.whole_attention;
    const int64_t queries = whole ? longest : std::min(options.query_chunk, longest);
    const int64_t keys = std::min(longest, window + queries);
    int64_t mask = whole ? 0 : queries * keys * (2 + element);
    int64_t latent = 0;  // queries, keys and outputs of one sequence in latent space
    if (a.latent && options.in_latent_space) {
      const int64_t rank = a.latent->rank, all = rank + a.latent->rope_dim;
      latent = longest * (a.num_q_heads * (3 * all + rank) + all) * element;
    }
    if (NeedsExplicitAttention(a)) mask += ExplicitAttentionBytes(a, longest);
    return step_tokens * (q_width + kv_width + out_width) * element +
           queries * out_width * element + queries * a.num_q_heads * 4 + mask + latent;
  }

  // Returns the bytes of a layer's temporaries. For a chunk of tokens, this is the largest of four
  // steps: norm, attention projections, MLP and experts. The temporaries of linear attention are
  // added.
  int64_t Temporaries(const LayerSpec& layer) const {
    const AttentionSpec& a = layer.attention;
    const int64_t norm = hidden_size * (element + 4 + (element == 4 ? 4 : 8));
    const int64_t q_width = a.num_q_heads * a.head_dim;
    const int64_t projection = hidden_size * element + q_width * (element + (a.qk_norm ? 12 : 0)) +
                               (a.gated || a.gate.exists() ? 3 : 1) * q_width * element + Latent(a);
    const int64_t mlp = hidden_size * 2 * element + layer.mlp.intermediate_size * 2 * element;
    int64_t expert = 0;
    if (const auto& experts = layer.experts) {
      expert = norm + hidden_size * (2 * element + 8) +
               3 * std::max(experts->intermediate_size, experts->shared_size) * element +
               experts->num_experts * 4 * 4;
    }
    return chunk_tokens * std::max({norm, projection, mlp, expert}) + DeltaNet(layer);
  }

  // Counts, per token, the latents and the heads that are expanded from them.
  int64_t Latent(const AttentionSpec& a) const {
    if (!a.latent) return 0;
    return (a.latent->rank + a.latent->rope_dim) * (3 * element + 8) +
           a.num_q_heads * (a.latent->nope_dim + a.v_head_dim) * element;
  }

  // Counts normalized input and result of the longest sequence, the projections of a chunk of
  // tokens, and the float32 inputs of the delta rule's chunks (gated_delta_net.cc).
  int64_t DeltaNet(const LayerSpec& layer) const {
    if (!layer.delta_net) return 0;
    constexpr int64_t kPairs = 64;
    const GatedDeltaNetSpec& net = *layer.delta_net;
    const int64_t projected = (3 * net.conv_width() + 2 * net.value_width()) * element;
    const int64_t heads = net.num_v_heads * (9 * net.k_head_dim + 8 * net.v_head_dim + 5 * kPairs);
    return longest * hidden_size * (2 * element + 8) + chunk_tokens * (projected + 4 * heads);
  }
};

}  // namespace

MemoryPlan PlanMemory(const ModelSpec& spec, const Checkpoint& checkpoint, int64_t tokens,
                      int64_t longest_sequence, at::ScalarType dtype, at::DeviceType device,
                      const LoopOptions& options) {
  const int64_t element = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t step_tokens = std::max(longest_sequence, std::min(tokens, options.token_chunk));
  const StepBytes step{element,          spec.hidden_size,
                       step_tokens,      std::min(step_tokens, options.token_chunk),
                       longest_sequence, options};
  int64_t read = 0, largest_pair = 0, largest_stored = 0, previous = 0, attention = 0,
          temporaries = 0, tables = 0, converting = 0;
  bool quantized = false;
  const RopeSpec* last_rope = nullptr;
  const bool cut = !options.need_final_hidden;
  const std::vector<const LayerSpec*> layers =
      LayersToRun(spec, {.last_attention_only = cut, .shared_queries = options.shared_queries});
  int64_t kept = 0;  // for the whole pass, without hidden states
  int64_t held_by_experts = 0;
  std::set<int> sources;  // layers whose keys and values are kept
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = *layers[i];
    const bool attention_only = cut && i + 1 == layers.size();
    if (layer.attention.shared_kv && sources.insert(*layer.attention.shared_kv).second)
      kept += tokens * layer.attention.num_kv_heads * 2 * layer.attention.head_dim * element;
    if (layer.experts && !attention_only) {
      held_by_experts =
          std::max(held_by_experts, ExpertsPass::HeldBytes(*layer.experts, tokens, element) +
                                        BesideExperts(layer) * element);
    }
    for (const PartBytes& part :
         MeasureParts(layer, checkpoint, attention_only, dtype, options.expert_bytes)) {
      read += part.stored;
      largest_stored = std::max(largest_stored, part.largest_stored);
      converting =
          std::max(converting, std::min(part.converted, kPinnedBytes + 2 * part.largest_stored));
      quantized |= part.quantized;
      largest_pair =
          std::max(largest_pair, ((options.prefetch ? previous : 0) + part.elements) * element);
      previous = part.elements;
    }
    attention = std::max(attention, step.Attention(layer.attention));
    temporaries = std::max(temporaries, step.Temporaries(layer));
    const RopeSpec& rope = layer.attention.rope;
    if (NumPairs(rope) > 0 && (last_rope == nullptr || !(*last_rope == rope)))
      tables += longest_sequence * rope.rotary_dim * element;
    last_rope = &rope;
  }
  kept += held_by_experts;
  PartBytes embedding;
  Add({spec.embedding, {spec.vocab_size, spec.hidden_size}}, checkpoint, dtype, embedding);
  const int64_t tables_read = spec.position_embedding.empty() ? 1 : 2;
  read += std::min(embedding.stored, tables_read * tokens * (embedding.stored / spec.vocab_size));

  if (const auto& inputs = spec.per_layer_inputs)
    kept += (tokens * (spec.hidden_size + 4 * inputs->dim) +
             inputs->projection.out_features * spec.hidden_size) *
            element;

  const bool cuda = device != at::kCPU;
  MemoryPlan plan;
  plan.weights_read = static_cast<uint64_t>(read);
  plan.layer_weights = static_cast<uint64_t>(largest_pair);
  plan.staging = static_cast<uint64_t>(cuda ? kPinnedBytes : largest_stored);
  plan.hidden = static_cast<uint64_t>(tokens * spec.hidden_size * element);
  plan.kept = static_cast<uint64_t>(kept);
  plan.attention = static_cast<uint64_t>(attention);
  plan.temporaries = static_cast<uint64_t>(temporaries + tables + tokens * 4 +
                                           (quantized ? DequantizeBytes(device) : 0));
  plan.program =
      ResidentBytes() + static_cast<uint64_t>(cuda ? kLazyCudaProgramBytes : kLazyProgramBytes);
  plan.workspaces = cuda ? kCublasWorkspaceBytes : 0;
  const uint64_t computing = plan.layer_weights + plan.hidden + plan.kept + plan.attention +
                             plan.temporaries + plan.workspaces;
  // Weights arrive in stored form, and exist in both forms while they are converted.
  plan.device_peak = cuda ? computing + static_cast<uint64_t>(converting) : 0;
  plan.host_peak = plan.staging + plan.program + (cuda ? 0 : computing);
  return plan;
}

}  // namespace oscar
