// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/experts_spec.h"

#include <algorithm>

namespace oscar {
namespace {

void Append(const std::string& name, const std::vector<int64_t>& shape,
            std::vector<TensorNeed>& needs) {
  if (!name.empty()) needs.push_back({name, shape});
}

}  // namespace

std::string ExpertTensor(const ExpertsSpec& experts, int64_t expert, const std::string& name) {
  return experts.prefix + std::to_string(expert) + "." + name;
}

void AppendRouterTensors(const ExpertsSpec& experts, std::vector<TensorNeed>& needs) {
  const RouterSpec& router = experts.router;
  router.logits.AddNeeds(needs);
  const int64_t n = experts.num_experts;
  Append(router.choice_bias,
         router.choice_bias_rows > 0 ? std::vector<int64_t>{router.choice_bias_rows, n}
                                     : std::vector<int64_t>{n},
         needs);
  Append(router.input_scale, {experts.hidden_size}, needs);
  Append(router.per_expert_scale, {n}, needs);
  if (experts.shared_size == 0) return;
  experts.shared_gate_proj.AddNeeds(needs);
  experts.shared_up_proj.AddNeeds(needs);
  experts.shared_down_proj.AddNeeds(needs);
  experts.shared_gate.AddNeeds(needs);
}

void AppendTensors(const ExpertsSpec& experts, std::vector<TensorNeed>& needs) {
  AppendRouterTensors(experts, needs);
  AppendExpertTensors(experts, needs);
}

void AppendExpertTensors(const ExpertsSpec& experts, std::vector<TensorNeed>& needs) {
  const int64_t n = experts.num_experts, hidden = experts.hidden_size;
  const int64_t size = experts.intermediate_size;
  if (experts.rows_below) {
    for (const std::string* name : {&experts.gate_up, &experts.up, &experts.down})
      needs.push_back({*name, {n * size, hidden}});
    return;
  }
  if (experts.fused) {
    const auto matrices = [&](int64_t out, int64_t in) {
      return experts.transposed ? std::vector<int64_t>{n, in, out}
                                : std::vector<int64_t>{n, out, in};
    };
    needs.push_back({experts.gate_up, matrices(2 * size, hidden)});
    Append(experts.gate_up_bias, {n, 2 * size}, needs);
    needs.push_back({experts.down, matrices(hidden, size)});
    Append(experts.down_bias, {n, hidden}, needs);
    return;
  }
  for (int64_t expert = 0; expert < n; ++expert) {
    needs.push_back({ExpertTensor(experts, expert, experts.gate_name), {size, hidden}});
    needs.push_back({ExpertTensor(experts, expert, experts.up_name), {size, hidden}});
    needs.push_back({ExpertTensor(experts, expert, experts.down_name), {hidden, size}});
  }
}

std::vector<ExpertRun> SplitExperts(const ExpertsSpec& experts, int64_t element,
                                    int64_t run_bytes) {
  const int64_t most = std::clamp(run_bytes / (experts.values_per_expert() * element), int64_t{1},
                                  std::max<int64_t>(experts.num_experts, 1));
  // Makes runs as equal as possible, so that the last one is not small.
  const int64_t runs = (experts.num_experts + most - 1) / most;
  std::vector<ExpertRun> result;
  for (int64_t i = 0, first = 0; i < runs; ++i) {
    const int64_t end = experts.num_experts * (i + 1) / runs;
    result.push_back({first, end - first});
    first = end;
  }
  return result;
}

}  // namespace oscar
