// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Random problems for the attention-KL kernels, and the comparison of their results with float64.
// Workspace and outputs are filled with NaN before every launch, so that missing writes show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/cuda/attention_kl/attention_kl.h"
#include "export/cuda/attention_kl/attention_kl_reference.h"
#include "export/cuda/device/device_array.h"

namespace oscar {

using Bf16s = DeviceArray<__nv_bfloat16>;

struct Case {
  AttentionKlShape shape;
  AttentionKlOptions options;
  double sharpness = 2;            // standard deviation of the logits
  double noise = 0.1;              // standard deviation of k_hat - k and v_hat - v; of k and v: 1
  double q_noise = 0;              // standard deviation of q_hat - q; 0: no q_hat
  std::vector<int64_t> positions;  // empty: all rows
  uint64_t seed = 1;
};

// Returns a case that compares all rows with scale 1 / sqrt(head_dim). It compares outputs too if
// v_head_dim > 0.
Case CaseOf(int64_t tokens, int64_t kv_heads, int64_t ratio, int64_t head_dim,
            int64_t v_head_dim = 0);

// The device tensors of a case and the results of its launch.
class Problem {
 public:
  explicit Problem(const Case& c);
  void Launch();  // waits for the results

  int64_t Position(int64_t row) const {
    return case_.positions.empty() ? row : case_.positions[static_cast<size_t>(row)];
  }
  const Case& of() const { return case_; }

  AttentionKlInputs inputs;
  std::vector<float> kl, logit_error_sq, logit_sq, lse, lse_hat;
  std::vector<double> output_error_sq, output_sq;  // per output row
  Bf16s q_, q_hat_, k_, k_hat_, v_, v_hat_;

 private:
  Case case_;
  DeviceArray<int64_t> positions_;
};

// The worst error over all rows and results. Errors are divided by their tolerances.
struct Worst {
  double error = 0;
  std::string where;
  void Add(double error_now, const std::string& where_now) {
    if (error_now <= error) return;
    error = error_now;
    where = where_now;
  }
};

// Compares all rows, or `samples` random ones, with float64. `logit_rounding`: error of a logit
// from float32 accumulation, in nats.
Worst Compare(Problem& run, size_t samples = 0, double logit_rounding = 4e-6);

}  // namespace oscar
