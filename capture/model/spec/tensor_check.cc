// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the tensors of a checkpoint with its ModelSpec: names, shapes and types. Some of these
// functions are declared in model_spec.h. A tensor counts as used if any dense weight is made from
// it, under any name (weight_storage.h).
#include "capture/model/spec/tensor_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "capture/checkpoint/weight_files.h"
#include "capture/checkpoint/weight_storage.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Rows of an embedding table are gathered one by one from the file.
bool IsTable(const ModelSpec& spec, const std::string& name) {
  return name == spec.embedding || name == spec.position_embedding ||
         (spec.per_layer_inputs && name == spec.per_layer_inputs->table);
}

// Returns the type of the stored values, unless they are codes.
std::optional<DType> PlainDType(const WeightStorage& storage) {
  const DType dtype = storage.gguf != nullptr ? storage.gguf->info.dtype : storage.parts[0].dtype;
  return (storage.plain() || storage.gguf != nullptr) && IsPlain(dtype) ? std::optional(dtype)
                                                                        : std::nullopt;
}

// Adds the stored tensors that make up `need`. Returns a problem with them, or "".
std::string Problem(const ModelSpec& spec, const TensorNeed& need, const Checkpoint& checkpoint,
                    std::set<std::string>& used) {
  used.insert(need.name);
  if (!StoresWeight(checkpoint, need.name)) {
    return fmt::format("tensor {} is missing, expected [{}]", need.name,
                       fmt::join(need.shape, ", "));
  }
  try {
    const WeightStorage storage = FindWeightStorage(checkpoint, need.name);
    for (const WeightPart& part : storage.parts) used.insert(part.name);
    used.insert(storage.also_read.begin(), storage.also_read.end());
    if (storage.shape != need.shape) {
      return fmt::format("tensor {} has shape [{}], expected [{}] from the configuration",
                         need.name, fmt::join(storage.shape, ", "), fmt::join(need.shape, ", "));
    }
    if (!storage.plain() && storage.gguf == nullptr && IsTable(spec, need.name)) {
      return fmt::format("tensor {} is stored as {}, which is not implemented for an embedding",
                         need.name, storage.scheme.name);
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Some packers write a zero bias for every linear layer.
bool IsZeroBias(const Checkpoint& checkpoint, const std::string& name) {
  constexpr std::string_view kBias = "bias";
  if (checkpoint.quantization().plain() || !name.ends_with(".bias")) return false;
  if (!checkpoint.Contains(name.substr(0, name.size() - kBias.size()) + "qweight")) return false;
  return std::ranges::all_of(checkpoint.tensor(name).data,
                             [](std::byte value) { return value == std::byte{0}; });
}

bool IsSkipped(const ModelSpec& spec, const Checkpoint& checkpoint, const std::string& name) {
  return std::ranges::any_of(spec.skipped_suffixes,
                             [&](const auto& suffix) { return name.ends_with(suffix); }) ||
         std::ranges::any_of(spec.skipped_prefixes,
                             [&](const auto& prefix) { return name.starts_with(prefix); }) ||
         (!checkpoint.quantization().plain() && IsActivationScale(name)) ||
         IsZeroBias(checkpoint, name);
}

// Names the prefix if all tensors have another prefix than the family's.
std::string OtherPrefix(const ModelSpec& spec, const Checkpoint& checkpoint) {
  constexpr std::string_view kTail = "embed_tokens.weight";
  if (checkpoint.Contains(spec.embedding) || !spec.embedding.ends_with(kTail)) return {};
  for (const std::string& name : checkpoint.names()) {
    if (!name.ends_with(kTail)) continue;
    return fmt::format(
        "its tensors are named {}..., expected {}...; rename them, or load the model with "
        "transformers and save it again; ",
        name.substr(0, name.size() - kTail.size()),
        spec.embedding.substr(0, spec.embedding.size() - kTail.size()));
  }
  return {};
}

}  // namespace

std::vector<std::string> TensorProblems(const ModelSpec& spec, const Checkpoint& checkpoint) {
  std::vector<std::string> problems;
  std::set<std::string> used;
  for (const TensorNeed& need : AllTensors(spec)) {
    const std::string problem = Problem(spec, need, checkpoint, used);
    if (!problem.empty()) problems.push_back(problem);
  }
  for (const std::string& name : checkpoint.names()) {
    if (used.contains(name) || IsSkipped(spec, checkpoint, name)) continue;
    problems.push_back(
        fmt::format("tensor {} is in the checkpoint but not part of a {} model with {} layers",
                    name, spec.model_type, AllLayers(spec).size()));
  }
  return problems;
}

void CheckTensors(const ModelSpec& spec, const Checkpoint& checkpoint) {
  constexpr size_t kShown = 5;
  std::vector<std::string> problems = TensorProblems(spec, checkpoint);
  if (problems.empty()) return;
  const size_t total = problems.size();
  const std::vector<std::string> names = checkpoint.names();
  const std::string cause = WhyStray(checkpoint.directory(), {names.begin(), names.end()}) +
                            OtherPrefix(spec, checkpoint);
  if (total > kShown) problems.resize(kShown);
  throw InputError(fmt::format("{}: the weights do not match the configuration: {}{}{}",
                               checkpoint.directory().string(), cause, fmt::join(problems, "; "),
                               total > kShown ? fmt::format("; and {} more", total - kShown) : ""));
}

DType StoredDType(const ModelSpec& spec, const Checkpoint& checkpoint) {
  if (!checkpoint.has_weights()) {
    return spec.config_dtype == "float32"   ? DType::kF32
           : spec.config_dtype == "float16" ? DType::kF16
                                            : DType::kBF16;
  }
  std::map<DType, uint64_t> layers, all;  // bytes of plain tensors
  bool quantized = false;
  for (const LayerSpec* layer : AllLayers(spec)) {
    for (const TensorNeed& need : LayerTensors(*layer)) {
      const WeightStorage storage = FindWeightStorage(checkpoint, need.name);
      if (const auto dtype = PlainDType(storage)) layers[*dtype] += storage.bytes();
      quantized |= !PlainDType(storage);
    }
  }
  all = layers;
  const WeightStorage embedding = FindWeightStorage(checkpoint, spec.embedding);
  if (const auto dtype = PlainDType(embedding)) all[*dtype] += embedding.bytes();
  return std::ranges::max_element(quantized ? all : layers, {},
                                  [](const auto& entry) { return entry.second; })
      ->first;
}

std::string DescribeStorage(const ModelSpec& spec, const Checkpoint& checkpoint) {
  if (!checkpoint.has_weights()) {
    const std::string& method = checkpoint.quantization().method();
    return fmt::format("not present, known only from config.json{}{}", method.empty() ? "" : ", ",
                       method);
  }
  if (checkpoint.quantization().plain() && !checkpoint.is_gguf())
    return std::string(DTypeName(StoredDType(spec, checkpoint)));
  std::map<std::string, uint64_t> bytes;
  for (const TensorNeed& need : AllTensors(spec)) {
    const WeightStorage storage = FindWeightStorage(checkpoint, need.name);
    bytes[storage.scheme.name] += storage.bytes();
  }
  std::vector<std::pair<uint64_t, std::string>> sorted;
  for (const auto& [name, size] : bytes) sorted.emplace_back(size, name);
  std::ranges::sort(sorted, std::greater<>());
  std::string text;
  for (const auto& [size, name] : sorted) text += (text.empty() ? "" : "; ") + name;
  return text;
}

}  // namespace oscar
