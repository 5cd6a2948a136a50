// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts as data: how a token chooses experts (the router), what an expert computes,
// how experts are stored. Trap: choices are discrete, so two routers that agree to 1e-6 may send a
// token to different experts. Terms that exist only for the choice (choice_bias, sets) do not
// affect the weights of the chosen experts, and vice versa.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/model/spec/linear_spec.h"

namespace oscar {

// The score by which the top k experts are chosen.
enum class RouterScore {
  kSoftmax,        // softmax over all experts
  kSigmoid,        // independent per expert (DeepSeek-V3, arXiv 2412.19437, equations 13 to 16)
  kChosenSoftmax,  // the logit; weights are a softmax over the chosen (gpt-oss, Granite)
  kSparseMixer,    // the logit; two choices, each weighed against similar logits (arXiv 2409.12136)
};

struct RouterSpec {
  RouterScore score = RouterScore::kSoftmax;
  LinearSpec logits;             // [num_experts, hidden_size]
  bool float32_logits = false;   // float32 for any compute dtype
  std::string choice_bias = {};  // tensor name; [num_experts] float32, choice only; "": none
  int64_t choice_bias_rows = 0;  // stored as [rows, num_experts]; only the first row is used
  int64_t top_k = 0;
  bool normalize = false;          // scales the chosen experts' weights to a sum of 1
  double smallest_weight_sum = 0;  // normalize divides by at least this
  double scale = 1;                // factor on the weights after that
  int64_t num_expert_sets = 1;     // number of equal sets of experts
  int64_t top_expert_sets = 1;     // experts are only chosen from this many of the best sets
  int64_t set_terms = 2;           // a set is ranked by the sum of this many highest scores
  double mixer_distance = 0;       // kSparseMixer: a logit is near if it is lower by at most this
                                   // share of the larger magnitude
  bool weigh_input = false;        // the weight multiplies the expert's input (Llama 4)
  bool normed_input = false;       // Gemma 4: logits of input_scale * x / rms(x) / sqrt(hidden)
  std::string input_scale = {};    // tensor name; [hidden_size], with normed_input
  std::string per_expert_scale =
      {};  // tensor name; [num_experts], last factor on the weights, or ""
};

// Each expert computes down(activation(gate(x)) * up(x)).
struct ExpertsSpec {
  int64_t num_experts = 0, hidden_size = 0, intermediate_size = 0;
  RouterSpec router;
  Activation activation = Activation::kSilu;
  std::optional<ClampedGate> clamped_gate = std::nullopt;  // replaces the activation and product

  // Fused: one tensor for gate and up of all experts, [num_experts, 2 intermediate, hidden], and
  // one for down, [num_experts, hidden, intermediate]; or both with the last two dimensions
  // exchanged. Otherwise three tensors per expert, named prefix + number + "." + name.
  bool fused = false;
  bool transposed = false;   // fused: [.., in_features, out_features]
  bool interleaved = false;  // fused: gate and up rows alternate; otherwise gate comes first
  // Fused, but with separate tensors for gate and up. All three tensors are [num_experts *
  // intermediate, hidden], so down is transposed (DBRX).
  bool rows_below = false;
  std::string gate_up = {}, up = {}, down = {};   // fused: tensor names; `up` only with rows_below
  std::string gate_up_bias = {}, down_bias = {};  // fused: tensor names, or "" for none
  std::string prefix = {};                        // not fused: "model.layers.3.mlp.experts."
  std::string gate_name = {}, up_name = {}, down_name = {};  // not fused: "gate_proj.weight" ...

  // The result of the shared expert, which every token uses, is added to the experts' sum. There is
  // none if shared_size is 0.
  int64_t shared_size = 0;  // intermediate size of the shared expert
  LinearSpec shared_gate_proj, shared_up_proj, shared_down_proj;
  double sum_scale = 1;    // factor on the whole sum, including the shared expert
  LinearSpec shared_gate;  // sigmoid(shared_gate(x)) multiplies it, if present

  // Number of values in the weights of one expert.
  int64_t values_per_expert() const { return 3 * hidden_size * intermediate_size; }
};

// Returns "model.layers.3.mlp.experts.17.gate_proj.weight". Only if experts are not fused.
std::string ExpertTensor(const ExpertsSpec& experts, int64_t expert, const std::string& name);

// Appends the tensors of the router and the shared expert.
void AppendRouterTensors(const ExpertsSpec& experts, std::vector<TensorNeed>& needs);
// Appends the tensors of the experts.
void AppendExpertTensors(const ExpertsSpec& experts, std::vector<TensorNeed>& needs);
// Appends all tensors.
void AppendTensors(const ExpertsSpec& experts, std::vector<TensorNeed>& needs);

// Experts [first, first + count), whose weights are in memory at the same time. SplitExperts limits
// the weights of a run to `run_bytes` in a dtype of `element` bytes, but a run has at least one
// expert.
struct ExpertRun {
  int64_t first = 0, count = 0;
};
std::vector<ExpertRun> SplitExperts(const ExpertsSpec& experts, int64_t element, int64_t run_bytes);

}  // namespace oscar
