// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/sglang.h"  // LaunchModel
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Model types for which the converter reorders W_Q and W_K: OlmoModel, and LlamaModel with its
// subclasses that do not turn this off.
constexpr std::array<std::string_view, 13> kReordered = {
    "llama", "mistral", "mixtral",    "ministral", "ministral3",       "mistral3",        "granite",
    "arcee", "olmo",    "granitemoe", "smollm3",   "granitemoeshared", "granitemoehybrid"};

// Returns an integer from the model's header; nullopt if it is absent or an array with one value
// per layer.
std::optional<uint64_t> Count(const GgufFile& model, const std::string& key) {
  const auto entry = model.entries.find(key);
  if (entry == model.entries.end()) return std::nullopt;
  if (const auto* count = std::get_if<uint64_t>(&entry->second)) return *count;
  const auto* count = std::get_if<int64_t>(&entry->second);
  return count != nullptr && *count >= 0 ? std::optional<uint64_t>(*count) : std::nullopt;
}

}  // namespace

std::string ModelTypeOf(const Artifact& artifact) {
  const Json model = artifact.manifest().value("model", Json::object());
  return model.value("model_type", "");
}

std::optional<FittedGguf> FittedGgufOf(const Artifact& artifact) {
  const Json model = artifact.manifest().value("model", Json::object());
  const Json weights = model.value("weights", Json::object());
  if (!weights.is_object() || weights.size() != 1) return std::nullopt;
  const std::string name = weights.begin().key();
  if (!name.ends_with(".gguf")) return std::nullopt;
  return FittedGguf{name, JsonString(weights.front(), "sha256", kManifestFile)};
}

std::vector<int64_t> SameOrder(int64_t dim) {
  std::vector<int64_t> order(static_cast<size_t>(dim));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int64_t> GgufKeyOrder(std::string_view model_type, int64_t dim) {
  std::vector<int64_t> order = SameOrder(dim);
  if (dim % 2 != 0 || std::ranges::find(kReordered, model_type) == kReordered.end()) return order;
  for (int64_t i = 0; i < dim; ++i) order[static_cast<size_t>(i)] = (i % 2) * (dim / 2) + i / 2;
  return order;
}

void CheckGgufModel(const GgufFile& model, const Artifact& artifact, bool all_layers) {
  const std::string file = model.file.path().string();
  const auto entry = model.entries.find("general.architecture");
  const auto* name =
      entry == model.entries.end() ? nullptr : std::get_if<std::string_view>(&entry->second);
  if (name == nullptr)
    throw InputError(file + ": contains no general.architecture, so it is not a model");
  const std::string arch(*name);
  const auto count = [&](std::string_view key) {
    return Count(model, fmt::format("{}.{}", arch, key));
  };
  const Json& layers = JsonMember(artifact.manifest(), "geometry", kManifestFile);
  const auto differ = [&](std::string_view what, uint64_t of_model, uint64_t of_artifact) {
    throw InputError(fmt::format("{}: {} {}, but the artifact's model has {}; give the GGUF of {}",
                                 file, Escaped(what), of_model, of_artifact,
                                 LaunchModel(artifact.manifest())));
  };
  if (Count(model, "split.count").value_or(1) > 1) {
    throw InputError(fmt::format(
        "{}: this is part of a split model; join the parts with llama-gguf-split --merge", file));
  }
  const std::optional<uint64_t> blocks = count("block_count");
  if (!blocks) throw InputError(fmt::format("{}: {}.block_count is missing", file, Escaped(arch)));
  // The header's block count includes layers of multi-token prediction, which come last.
  const uint64_t predicts = count("nextn_predict_layers").value_or(0);
  if (all_layers && *blocks != layers.size() && *blocks != layers.size() + predicts)
    differ(arch + ".block_count is", *blocks, layers.size());
  const std::optional<uint64_t> width = count("embedding_length"),
                                heads = count("attention.head_count");
  std::optional<uint64_t> dim;  // head dimension if the header has no key for it
  if (width && heads && *heads > 0) dim = *width / *heads;
  for (const Json& layer : layers) {
    const auto of = [&](const char* key) {
      return static_cast<uint64_t>(JsonInt(layer, key, kManifestFile));
    };
    const uint64_t id = of("layer_id");
    if (id >= *blocks) differ(arch + ".block_count is", *blocks, id + 1);
    for (const bool keys : {true, false}) {
      const std::string key = keys ? "attention.key_length" : "attention.value_length";
      const uint64_t here = of(keys ? "head_dim" : "v_head_dim");
      const std::optional<uint64_t> there = count(key), sliding = count(key + "_swa");
      const std::optional<uint64_t> said = there ? there : dim;
      if (!said) throw InputError(fmt::format("{}: {}.{} is missing", file, Escaped(arch), key));
      if (here != *said && here != sliding)
        differ(fmt::format("{}.{} (layer {}) is", arch, key, id), *said, here);
    }
    const std::optional<uint64_t> kv_heads = count("attention.head_count_kv");
    if (kv_heads && *kv_heads != of("num_kv_heads"))
      differ(arch + ".attention.head_count_kv is", *kv_heads, of("num_kv_heads"));
  }
}

}  // namespace oscar
