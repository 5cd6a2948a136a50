// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "capture/model/device.h"
#include "capture/model/embedding.h"
#include "capture/model/weight_loader.h"

namespace oscar {
namespace {

// What LibTorch's libraries touch when they compute for the first time (code pages, thread pools,
// MKL buffers): measured with 2.11 on 2 cores, for models of 1 to 1000 MB in f32 and bf16, at 20 to
// 75 MiB.
constexpr int64_t kLazyProgramBytes = int64_t{48} << 20;
// The same with a GPU: driver, context, cuBLAS; measured on an H200 with CUDA 13.0 at 450 MiB.
constexpr int64_t kLazyCudaProgramBytes = int64_t{450} << 20;

int64_t Elements(const TensorNeed& need) {
  return std::accumulate(need.shape.begin(), need.shape.end(), int64_t{1}, std::multiplies<>());
}

struct LayerBytes {
  int64_t elements = 0, stored = 0, largest_stored = 0;  // values, bytes, bytes
};

LayerBytes Measure(const LayerSpec& layer, const Checkpoint& checkpoint, bool attention_only) {
  LayerBytes bytes;
  for (const TensorNeed& need : LayerTensors(layer, attention_only)) {
    const int64_t stored = static_cast<int64_t>(checkpoint.info(need.name).size);
    bytes.elements += Elements(need);
    bytes.stored += stored;
    bytes.largest_stored = std::max(bytes.largest_stored, stored);
  }
  return bytes;
}

// Sizes that one layer's step needs, in bytes. `element` is the compute dtype's size.
struct StepBytes {
  int64_t element, hidden_size;
  int64_t step_tokens;   // of one span
  int64_t chunk_tokens;  // of one projection or MLP step
  int64_t longest;       // sequence
  const LoopOptions& options;

  // q, k, v, attn_out of a span; the result of the largest attention call; its mask, as booleans
  // and as numbers.
  int64_t Attention(const AttentionSpec& a) const {
    const int64_t q_width = a.num_q_heads * a.head_dim, out_width = a.num_q_heads * a.v_head_dim;
    const int64_t kv_width = a.num_kv_heads * (a.head_dim + a.v_head_dim);
    const int64_t window = std::min(a.window.value_or(longest), longest);
    const bool whole = window == longest && longest <= options.whole_attention;
    const int64_t queries = whole ? longest : std::min(options.query_chunk, longest);
    const int64_t keys = std::min(longest, window + queries);
    const int64_t mask = whole ? 0 : queries * keys * (2 + element);
    return step_tokens * (q_width + kv_width + out_width) * element +
           queries * out_width * element + queries * a.num_q_heads * 4 + mask;
  }

  // The larger of: normed input, projected queries and their norm in float32; input, gate, up and
  // their product's way down.
  int64_t Temporaries(const LayerSpec& layer) const {
    const AttentionSpec& a = layer.attention;
    const int64_t norm = hidden_size * (element + 4 + (element == 4 ? 4 : 8));
    const int64_t q_width = a.num_q_heads * a.head_dim;
    const int64_t projection =
        hidden_size * element + q_width * (element + (a.qk_norm ? 12 : 0)) + q_width * element;
    const int64_t mlp = hidden_size * 2 * element + layer.mlp.intermediate_size * 2 * element;
    return chunk_tokens * std::max({norm, projection, mlp});
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
  const RopeSpec* last_rope = nullptr;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    const LayerBytes bytes =
        Measure(layer, checkpoint, !options.need_final_hidden && i + 1 == spec.layers.size());
    read += bytes.stored;
    largest_stored = std::max(largest_stored, bytes.largest_stored);
    converting =
        std::max(converting, std::min(bytes.stored, kPinnedBytes + 2 * bytes.largest_stored));
    largest_pair =
        std::max(largest_pair, ((options.prefetch ? previous : 0) + bytes.elements) * element);
    previous = bytes.elements;
    attention = std::max(attention, step.Attention(layer.attention));
    temporaries = std::max(temporaries, step.Temporaries(layer));
    const RopeSpec& rope = layer.attention.rope;
    if (last_rope == nullptr || !(*last_rope == rope))
      tables += longest_sequence * rope.rotary_dim * element;
    last_rope = &rope;
  }
  const TensorInfo& embedding = checkpoint.info(spec.embedding);
  const int64_t row = static_cast<int64_t>(embedding.size) / spec.vocab_size;
  read += std::min(static_cast<int64_t>(embedding.size), tokens * row);

  const bool cuda = device != at::kCPU;
  MemoryPlan plan;
  plan.weights_read = static_cast<uint64_t>(read);
  plan.layer_weights = static_cast<uint64_t>(largest_pair);
  plan.staging = static_cast<uint64_t>(cuda ? kPinnedBytes : largest_stored);
  plan.hidden = static_cast<uint64_t>(tokens * spec.hidden_size * element);
  plan.attention = static_cast<uint64_t>(attention);
  plan.temporaries = static_cast<uint64_t>(temporaries + tables + tokens * 4);
  plan.program =
      ResidentBytes() + static_cast<uint64_t>(cuda ? kLazyCudaProgramBytes : kLazyProgramBytes);
  plan.workspaces = cuda ? kCublasWorkspaceBytes : 0;
  const uint64_t computing =
      plan.layer_weights + plan.hidden + plan.attention + plan.temporaries + plan.workspaces;
  // Tensors arrive as they are stored; those whose bytes are under way are there twice.
  const bool converts = ToScalarType(StoredDType(spec, checkpoint), "the model") != dtype;
  plan.device_peak = cuda ? computing + static_cast<uint64_t>(converts ? converting : 0) : 0;
  plan.host_peak = plan.staging + plan.program + (cuda ? 0 : computing);
  return plan;
}

}  // namespace oscar
