// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/cuda/attention_kl_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace oscar {
namespace {

// Returns the tolerance for the KL of a row: 1e-4 of it, plus two rounding terms. An error of r
// nats in the logits costs r sqrt(2 KL), because logit errors are typically sqrt(2 KL). Float32
// sums cost a fraction of m^2, where m is the mean logit error, because about m^2 / 2 cancels in
// the KL.
double KlTolerance(const AttentionKlRow& row, double logit_rounding) {
  const double mean = row.lse_hat - row.lse - row.kl;
  return 1e-4 * row.kl + logit_rounding * std::sqrt(2 * row.kl) + 3e-7 * mean * mean + 1e-10;
}

}  // namespace

Case CaseOf(int64_t tokens, int64_t kv_heads, int64_t ratio, int64_t head_dim, int64_t v_head_dim) {
  Case c;
  c.shape = {tokens, kv_heads * ratio, kv_heads, head_dim, v_head_dim, tokens};
  c.options.scale = 1 / std::sqrt(static_cast<double>(head_dim));
  c.options.outputs = v_head_dim > 0;
  c.options.logit_sq = true;
  return c;
}

Problem::Problem(const Case& c) : case_(c) {
  const AttentionKlShape& n = c.shape;
  const auto size = [&](int64_t num_heads, int64_t dim) {
    return static_cast<size_t>(n.tokens * num_heads * dim);
  };
  q_ = Bf16s(size(n.num_q_heads, n.head_dim));
  k_ = Bf16s(size(n.num_kv_heads, n.head_dim));
  k_hat_ = Bf16s(k_.size());
  FillAroundNormal(q_.data(), nullptr, q_.size(), c.sharpness, c.seed);
  FillAroundNormal(k_.data(), nullptr, k_.size(), 1, c.seed + 1);
  FillAroundNormal(k_hat_.data(), k_.data(), k_.size(), c.noise, c.seed + 2);
  inputs.q = q_.data();
  inputs.k = k_.data();
  inputs.k_hat = k_hat_.data();
  if (c.q_noise > 0) {
    q_hat_ = Bf16s(q_.size());
    FillAroundNormal(q_hat_.data(), q_.data(), q_.size(), c.q_noise, c.seed + 3);
    inputs.q_hat = q_hat_.data();
  }
  if (c.options.outputs) {
    v_ = Bf16s(size(n.num_kv_heads, n.v_head_dim));
    v_hat_ = Bf16s(v_.size());
    FillAroundNormal(v_.data(), nullptr, v_.size(), 1, c.seed + 4);
    FillAroundNormal(v_hat_.data(), v_.data(), v_.size(), c.noise, c.seed + 5);
    inputs.v = v_.data();
    inputs.v_hat = v_hat_.data();
  }
  if (!c.positions.empty()) {
    positions_ = DeviceArray<int64_t>(c.positions);
    inputs.positions = positions_.data();
  }
}

void Problem::Launch() {
  const AttentionKlShape& n = case_.shape;
  const auto rows = static_cast<size_t>(n.num_q_heads * n.rows);
  DeviceArray<float> out[5], outputs[2];
  for (DeviceArray<float>& o : out) {
    o = DeviceArray<float>(rows);
    o.Fill(0xFF);
  }
  const auto dim = static_cast<size_t>(n.v_head_dim);
  for (DeviceArray<float>& o : outputs) {
    o = DeviceArray<float>(rows * dim);
    o.Fill(0xFF);
  }
  DeviceArray<char> workspace(AttentionKlWorkspace(n, case_.options));
  workspace.Fill(0xFF);
  AttentionKlRows pointers{out[0].data(), out[1].data(), out[2].data(), out[3].data(),
                           out[4].data(), nullptr,       nullptr};
  if (!case_.options.logit_sq) pointers.logit_sq = nullptr;
  if (case_.options.outputs) {
    pointers.output = outputs[0].data();
    pointers.output_hat = outputs[1].data();
  }
  AttentionKl(n, case_.options, inputs, pointers, workspace.data(), workspace.bytes(), nullptr);
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
  kl = out[0].ToHost();
  logit_error_sq = out[1].ToHost();
  logit_sq = out[2].ToHost();
  lse = out[3].ToHost();
  lse_hat = out[4].ToHost();
  output_error_sq.assign(rows, 0);
  output_sq.assign(rows, 0);
  const std::vector<float> output = outputs[0].ToHost(), output_hat = outputs[1].ToHost();
  for (size_t i = 0; i < output.size(); ++i) {
    const double o = output[i], difference = output_hat[i] - o;
    output_error_sq[i / dim] += difference * difference;
    output_sq[i / dim] += o * o;
  }
}

Worst Compare(Problem& run, size_t samples, double logit_rounding) {
  run.Launch();
  const Case& c = run.of();
  std::vector<AttentionKlSample> where;
  std::vector<size_t> index;
  std::mt19937_64 random(7);
  const size_t all = static_cast<size_t>(c.shape.num_q_heads * c.shape.rows);
  for (size_t i = 0; i < (samples == 0 ? all : samples); ++i) {
    const size_t at = samples == 0 ? i : random() % all;
    index.push_back(at);
    where.push_back({static_cast<int>(at / static_cast<size_t>(c.shape.rows)),
                     run.Position(static_cast<int64_t>(at % static_cast<size_t>(c.shape.rows)))});
  }
  const std::vector<AttentionKlRow> expected =
      AttentionKlInFloat64(c.shape, c.options, run.inputs, where);
  Worst worst;
  for (size_t i = 0; i < index.size(); ++i) {
    const size_t at = index[i];
    const AttentionKlRow& e = expected[i];
    const std::string name =
        fmt::format("head {} position {}, KL {:.3e}", where[i].q_head, where[i].position, e.kl);
    const auto add = [&](const char* what, double got, double want, double tolerance) {
      const double error = std::isfinite(got) ? std::abs(got - want) / tolerance : 1e30;
      worst.Add(error, fmt::format("{} of {}: {:.6e} against {:.6e}", what, name, got, want));
    };
    add("KL", run.kl[at], e.kl, KlTolerance(e, logit_rounding));
    if (std::isinf(e.lse)) {  // all keys are skipped
      const bool nothing = run.lse[at] == e.lse && run.lse_hat[at] == e.lse && run.kl[at] == 0 &&
                           run.output_error_sq[at] == 0 && run.output_sq[at] == 0;
      worst.Add(nothing ? 0 : 1e30, name + " is of no key");
      continue;
    }
    add("LSE", run.lse[at], e.lse, 1e-5 * std::max(1.0, std::abs(e.lse)));
    add("LSE^", run.lse_hat[at], e.lse_hat, 1e-5 * std::max(1.0, std::abs(e.lse_hat)));
    add("logit error", run.logit_error_sq[at], e.logit_error_sq,
        1e-5 * e.logit_error_sq + logit_rounding * std::sqrt(e.logit_error_sq) + 1e-12);
    if (c.options.logit_sq)
      add("logits", run.logit_sq[at], e.logit_sq,
          1e-5 * e.logit_sq + logit_rounding * std::sqrt(e.logit_sq));
    if (c.options.outputs) {
      add("output error", run.output_error_sq[at], e.output_error_sq,
          2e-4 * e.output_error_sq + 2e-5 * std::sqrt(e.output_error_sq * e.output_sq) +
              1e-9 * e.output_sq + 1e-12);
      add("output", run.output_sq[at], e.output_sq, 1e-4 * e.output_sq + 1e-12);
    }
  }
  return worst;
}

}  // namespace oscar
