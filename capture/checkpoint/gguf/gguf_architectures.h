// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of GGUF architectures: the family in transformers, how to turn metadata into a
// config.json, and how to map tensor names. The counterpart in llama.cpp is convert_hf_to_gguf.py;
// values that are not in the file come from its src/models. An architecture is a row in
// gguf_architectures.cc and, if needed, a function in gguf_families.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/gguf/gguf_model.h"

namespace oscar {

// Typed access to the metadata of one architecture by names without its prefix ("block_count" for
// "llama.block_count"). It remembers which names were read.
class GgufFields {
 public:
  explicit GgufFields(const GgufModel& model)
      : model_(model), prefix_(model.architecture() + ".") {}

  const GgufModel& model() const { return model_; }
  bool Has(std::string_view key) const { return model_.header().entries.contains(Full(key)); }
  std::optional<uint64_t> Count(std::string_view key);
  uint64_t NeedCount(std::string_view key);  // throws InputError if it is missing
  std::optional<double> Number(std::string_view key);
  std::optional<std::string> String(std::string_view key);
  Json Scalar(std::string_view key);  // one bool or number for all layers
  // Returns one value per layer, even if the file has one for all; nothing if the key is missing.
  std::optional<std::vector<uint64_t>> EachLayer(std::string_view key);
  // Returns the value that all layers share. Throws if they differ.
  std::optional<uint64_t> OfAllLayers(std::string_view key);
  std::optional<std::vector<bool>> Bools(std::string_view key);
  void Ignore(std::string_view key) { read_.insert(Full(key)); }

  uint64_t num_blocks();  // at most 4096
  uint64_t num_layers();  // without multi-token prediction layers
  uint64_t num_heads() { return OfAllLayers("attention.head_count").value_or(0); }
  uint64_t num_kv_heads();  // requires the same number in all layers
  uint64_t head_dim();
  bool Stores(std::string_view tensor) const { return model_.Find(tensor) != nullptr; }

  // Copies fields that were not read, with their full names, so that they are treated like unknown
  // fields of a config.json.
  void PassUnread(Json& config) const;

 private:
  std::string Full(std::string_view key) const { return prefix_ + std::string(key); }
  const std::string& Read(std::string_view key);

  const GgufModel& model_;
  std::string prefix_;
  std::set<std::string, std::less<>> read_;
};

// How a dense tensor is made from a stored one.
enum class GgufRuleKind {
  kSame,
  kNorm,       // norm weights, to which the converter may have added 1
  kQueryRows,  // rows of query heads, which the converter may have interleaved
  kKeyRows,
  kExperts,     // stacked; split into one tensor per expert, whose number replaces "{e}"
  kRow,         // stored [n], dense [1, n]
  kLogOfMinus,  // stored -exp(x), dense x
  kSkip,        // not a weight: used for the configuration, or not at all
};

// Names of a layer's tensors omit "blk.N." and "model.layers.N."; other names are complete.
struct GgufRule {
  std::string_view stored, dense;
  GgufRuleKind kind = GgufRuleKind::kSame;
};

class GgufWeightMaker;

// How the converter changed the weights of an architecture.
enum class GgufStorage {
  kAsTrained,
  kInterleaved,  // rows of q and k are in the order of interleaved rope
  kNormsPlusOne,
};

struct GgufArchitecture {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // name in transformers
  std::string_view model_class;
  GgufStorage storage = GgufStorage::kAsTrained;
  std::span<const GgufRule> rules = {};                      // tried before the shared rules
  void (*config)(GgufFields&, Json&) = nullptr;              // adds to the common fields
  void (*weights)(GgufFields&, GgufWeightMaker&) = nullptr;  // handles what rules cannot express
};
// Throws InputError naming the architecture and the supported ones if there is no such entry.
const GgufArchitecture& FindGgufArchitecture(const GgufModel& model);

// Assembles the weights of a model. Each stored tensor is used by one or more dense tensors.
class GgufWeightMaker {
 public:
  using Weights = std::map<std::string, GgufWeight, std::less<>>;

  GgufWeightMaker(const GgufModel& model, const GgufArchitecture& architecture)
      : model_(model), architecture_(architecture) {}

  // Takes a whole stored tensor as one part, with the rows and columns of each matrix, and marks it
  // as used. A three-dimensional tensor has several matrices, any other has one.
  GgufWeight::Part Take(std::string_view stored);
  bool Has(std::string_view stored) const { return model_.Find(stored) != nullptr; }
  // Adds one whole tensor under another name, with its rows and columns in the given orders.
  GgufWeight& AddReordered(const std::string& stored, const std::string& dense,
                           std::vector<int64_t> row_order, std::vector<int64_t> column_order = {});
  // Adds a weight with the given shape and parts.
  GgufWeight& Add(const std::string& dense, std::vector<int64_t> shape,
                  std::vector<GgufWeight::Part> parts);
  void Apply(const GgufRule& rule, const std::string& stored, const std::string& dense,
             GgufFields& fields);
  // Declares that the matrices of a stacked weight are transposed in the dense tensor.
  void Transpose(const std::string& dense);
  bool used(std::string_view stored) const { return used_.contains(stored); }
  void Skip(std::string_view stored) { used_.emplace(stored); }
  Weights Finish();

 private:
  const GgufModel& model_;
  const GgufArchitecture& architecture_;
  Weights weights_;
  std::set<std::string, std::less<>> used_;
};

// Returns the row order that undoes the converter's interleaving of the first and second half of
// each head (LlamaModel.permute in convert_hf_to_gguf.py). For i < dim / 2, row i of a head is its
// stored row 2 i, and row dim / 2 + i is its stored row 2 i + 1.
std::vector<int64_t> HalvesOfPairs(int64_t rows, int64_t num_heads);

// GgufName(3, "attn_q.weight") is "blk.3.attn_q.weight"; DenseName uses the prefix of transformers.
std::string GgufName(uint64_t layer, std::string_view name);
std::string DenseName(uint64_t layer, std::string_view name);

// Functions in gguf_families.cc: first those that all architectures share, then those in the table.
void GgufCommonConfig(GgufFields& fields, Json& config);
void GgufDecoderConfig(GgufFields& fields, Json& config);
void GgufBiasedConfig(GgufFields& fields, Json& config);
void GgufLlamaConfig(GgufFields& fields, Json& config);
void GgufMistral3Config(GgufFields& fields, Json& config);
void GgufGraniteConfig(GgufFields& fields, Json& config);
void GgufSmolLm3Config(GgufFields& fields, Json& config);
void GgufQwenMoeConfig(GgufFields& fields, Json& config);
void GgufQwenHybridConfig(GgufFields& fields, Json& config);
void GgufGemmaConfig(GgufFields& fields, Json& config);
void GgufGemma4Config(GgufFields& fields, Json& config);
void GgufPhi3Config(GgufFields& fields, Json& config);
void GgufGlmConfig(GgufFields& fields, Json& config);
void GgufGptOssConfig(GgufFields& fields, Json& config);
void GgufDeepSeekConfig(GgufFields& fields, Json& config);
// Functions in gguf_reordered.cc.
void GgufFusedExperts(GgufFields& fields, GgufWeightMaker& maker);
void GgufQwen3NextWeights(GgufFields& fields, GgufWeightMaker& maker);
void GgufQwen35Weights(GgufFields& fields, GgufWeightMaker& maker);
void GgufGptOssWeights(GgufFields& fields, GgufWeightMaker& maker);
void GgufDeepSeekWeights(GgufFields& fields, GgufWeightMaker& maker);

}  // namespace oscar
