// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/model/synthetic_model.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "capture/model/spec/model_spec.h"

namespace oscar {
namespace {

// Returns uniform values of variance 1 / fan_in, or ones for a norm weight.
std::vector<uint16_t> RandomBFloat16(const TensorNeed& need, std::minstd_rand& random) {
  const int64_t count =
      std::accumulate(need.shape.begin(), need.shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<uint16_t> values(static_cast<size_t>(count), 0x3f80);
  if (need.shape.size() == 1) return values;
  const float scale = std::sqrt(3.0F / static_cast<float>(need.shape.back()));
  for (uint16_t& value : values) {
    const float uniform =
        static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max());
    value = static_cast<uint16_t>(std::bit_cast<uint32_t>(scale * (2 * uniform - 1)) >> 16);
  }
  return values;
}

}  // namespace

Json SyntheticConfig(int64_t num_layers, int64_t hidden_size, int64_t intermediate_size,
                     int64_t num_q_heads, int64_t num_kv_heads, int64_t head_dim,
                     int64_t vocab_size) {
  return {{"architectures", {"Qwen3ForCausalLM"}},
          {"model_type", "qwen3"},
          {"hidden_size", hidden_size},
          {"num_hidden_layers", num_layers},
          {"num_attention_heads", num_q_heads},
          {"num_key_value_heads", num_kv_heads},
          {"head_dim", head_dim},
          {"intermediate_size", intermediate_size},
          {"vocab_size", vocab_size},
          {"max_position_embeddings", 131072},
          {"rope_theta", 1000000.0},
          {"rms_norm_eps", 1e-6},
          {"tie_word_embeddings", true},
          {"hidden_act", "silu"},
          {"torch_dtype", "bfloat16"}};
}

void WriteSyntheticModel(const std::filesystem::path& directory, const Json& config) {
  WriteFileAtomically(directory / "config.json", config.dump());
  const std::vector<TensorNeed> needs = AllTensors(ReadModelSpec(config));
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const TensorNeed& need : needs)
    declarations.push_back({need.name, DType::kBF16, need.shape});
  SafetensorsWriter writer(directory / "model.safetensors", declarations);
  std::minstd_rand random(7);
  for (const TensorNeed& need : needs) {
    const std::vector<uint16_t> values = RandomBFloat16(need, random);
    writer.Write(need.name, std::as_bytes(std::span(values)));
  }
  writer.Commit();
}

void CopyWeights(const std::filesystem::path& from, const std::filesystem::path& to,
                 const std::function<void(TensorMap&)>& change) {
  const SafetensorsFile source = SafetensorsFile::Open(from / "model.safetensors");
  TensorMap tensors;
  for (const auto& [name, info] : source.tensors()) {
    const TensorView view = source.tensor(name);
    tensors[name] = {view.dtype, view.shape, {view.data.begin(), view.data.end()}};
  }
  change(tensors);
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const auto& [name, tensor] : tensors)
    declarations.push_back({name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(to / "model.safetensors", declarations);
  for (const auto& [name, tensor] : tensors) writer.Write(name, tensor.data);
  writer.Commit();
}

}  // namespace oscar
