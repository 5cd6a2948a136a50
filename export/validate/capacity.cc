// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/capacity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>

#include "export/simulate/guest_methods.h"

namespace oscar {
namespace {

constexpr int64_t kDeviceBytes = 80'000'000'000;
constexpr int64_t kContexts[] = {8192, 32768, 131072};  // tokens
constexpr int64_t kRequestTokens = 32768;

// Returns the number of values that the caches of all layers hold for a sequence. A layer with a
// sliding window keeps only the tokens in the window.
double CachedValues(const std::vector<LayerSpec>& layers, int64_t tokens) {
  double values = 0;
  for (const LayerSpec& layer : layers) {
    if (!layer.has_cache()) continue;
    const AttentionSpec& spec = layer.attention;
    const int64_t row = spec.latent ? spec.num_kv_heads * spec.head_dim + spec.latent->rope_dim
                                    : spec.num_kv_heads * (spec.head_dim + spec.v_head_dim);
    values += static_cast<double>(row * std::min(tokens, spec.window.value_or(tokens)));
  }
  return values;
}

}  // namespace

measures::DeviceCapacity DeviceCapacity(const ModelSpec& spec) {
  int64_t values = 0;
  std::set<std::string> counted;  // tied tensors occur several times
  for (const TensorNeed& need : AllTensors(spec)) {
    if (!counted.insert(need.name).second) continue;
    values += std::accumulate(need.shape.begin(), need.shape.end(), int64_t{1}, std::multiplies());
  }
  return {kDeviceBytes, 2 * values, kRequestTokens};
}

measures::CacheCapacity ArmCapacity(const MethodContext& context, const Arm& arm,
                                    const measures::DeviceCapacity& device) {
  measures::CacheCapacity capacity;
  for (const int64_t tokens : kContexts) {
    const double bits = arm.method->cost(context, arm.options, tokens).actual;
    const double bytes = std::ceil(bits * CachedValues(context.layers(), tokens) / 8);
    capacity.held.push_back({tokens, static_cast<int64_t>(bytes), bits});
    if (tokens != kRequestTokens) continue;
    const auto left = static_cast<double>(device.device_bytes - device.weight_bytes);
    capacity.requests = std::max(int64_t{0}, static_cast<int64_t>(left / bytes));
  }
  for (const auto& [bits, name] : BudgetArms(context.artifact()))
    if (name == arm.name) capacity.budget = bits;
  return capacity;
}

}  // namespace oscar
