// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint against its ModelSpec, by names, shapes and types: declared in model_spec.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "capture/model/model_spec.h"
#include "linalg/error.h"

namespace oscar {
namespace {

bool IsPlain(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
}

std::string Problem(const TensorNeed& need, const Checkpoint& checkpoint) {
  if (!checkpoint.Contains(need.name)) {
    return fmt::format("tensor {} is missing, expected [{}]", need.name,
                       fmt::join(need.shape, ", "));
  }
  const TensorInfo& info = checkpoint.info(need.name);
  if (info.shape != need.shape) {
    return fmt::format("tensor {} has shape [{}], expected [{}] from the configuration", need.name,
                       fmt::join(info.shape, ", "), fmt::join(need.shape, ", "));
  }
  if (!IsPlain(info.dtype)) {
    return fmt::format(
        "tensor {} is stored as {}, a weight format that is not implemented. Supported: BF16, F16, "
        "F32",
        need.name, DTypeName(info.dtype));
  }
  return "";
}

}  // namespace

void CheckTensors(const ModelSpec& spec, const Checkpoint& checkpoint) {
  constexpr size_t kShown = 5;
  std::vector<std::string> problems;
  std::set<std::string> needed;
  for (const TensorNeed& need : AllTensors(spec)) {
    if (const std::string problem = Problem(need, checkpoint); !problem.empty())
      problems.push_back(problem);
    needed.insert(need.name);
  }
  for (const std::string& name : checkpoint.names()) {
    const bool skipped = std::ranges::any_of(
        spec.skipped_suffixes, [&](const auto& suffix) { return name.ends_with(suffix); });
    if (skipped || needed.contains(name)) continue;
    problems.push_back(
        fmt::format("tensor {} is in the checkpoint but not part of a {} model of {} layers", name,
                    spec.model_type, spec.layers.size()));
  }
  if (problems.empty()) return;
  const size_t total = problems.size();
  if (total > kShown) problems.resize(kShown);
  throw InputError(fmt::format("{}: the weights do not fit the configuration: {}{}",
                               checkpoint.directory().string(), fmt::join(problems, "; "),
                               total > kShown ? fmt::format("; and {} more", total - kShown) : ""));
}

DType StoredDType(const ModelSpec& spec, const Checkpoint& checkpoint) {
  std::map<DType, uint64_t> bytes;
  for (const LayerSpec& layer : spec.layers) {
    for (const TensorNeed& need : LayerTensors(layer)) {
      const TensorInfo& info = checkpoint.info(need.name);
      bytes[info.dtype] += info.size;
    }
  }
  return std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; })->first;
}

}  // namespace oscar
