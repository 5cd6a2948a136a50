// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Benchmarks the attention KL at the geometry of Qwen3-8B: 32 query heads, 8 KV heads, d 128, 64
// sink and 256 recent tokens. Tensor cores limit the speed, not memory, so one set of buffers is
// enough. At 32K tokens it exceeds the L2 cache anyway (q 268 MB, each K 67 MB). Flops count only
// pairs of a query and a key that it sees.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "export/cuda/attention_kl/attention_kl.h"
#include "export/cuda/attention_kl/attention_kl_reference.h"
#include "export/cuda/device/device_array.h"
#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

constexpr int64_t kQueryHeads = 32, kKvHeads = 8, kDim = 128;
constexpr double kPeakTflops = 790;  // bf16 peak of an H200
constexpr int kCheckedRows = 64;
using Bf16s = DeviceArray<__nv_bfloat16>;

struct Setup {
  AttentionKlShape shape;
  AttentionKlOptions options;
  Bf16s q, k, k_hat, v, v_hat;
  std::vector<int64_t> positions;
  DeviceArray<int64_t> device_positions;
  DeviceArray<float> kl, logit_error_sq, output, output_hat;
  DeviceArray<char> workspace;
  AttentionKlInputs inputs;
  AttentionKlRows rows;
};

// `noise`: standard deviation of k_hat - k. Keys have standard deviation 1 and logits 2.
std::shared_ptr<Setup> MakeSetup(int64_t tokens, int64_t rows, double noise, bool outputs) {
  auto setup = std::make_shared<Setup>();
  Setup& s = *setup;
  s.shape = {tokens, kQueryHeads, kKvHeads, kDim, kDim, rows};
  s.options.scale = 1 / std::sqrt(static_cast<double>(kDim));
  s.options.sink = 64;
  s.options.recent = 256;
  s.options.outputs = outputs;
  const auto tensor = [&](int64_t heads) {
    return Bf16s(static_cast<size_t>(tokens * heads * kDim));
  };
  s.q = tensor(kQueryHeads);
  s.k = tensor(kKvHeads);
  s.k_hat = tensor(kKvHeads);
  FillAroundNormal(s.q.data(), nullptr, s.q.size(), 2, 1);
  FillAroundNormal(s.k.data(), nullptr, s.k.size(), 1, 2);
  FillAroundNormal(s.k_hat.data(), s.k.data(), s.k.size(), noise, 3);
  s.inputs.q = s.q.data();
  s.inputs.k = s.k.data();
  s.inputs.k_hat = s.k_hat.data();
  const auto per_row = static_cast<size_t>(kQueryHeads * rows);
  s.kl = DeviceArray<float>(per_row);
  s.logit_error_sq = DeviceArray<float>(per_row);
  s.rows.kl = s.kl.data();
  s.rows.logit_error_sq = s.logit_error_sq.data();
  if (outputs) {
    s.v = tensor(kKvHeads);
    s.v_hat = tensor(kKvHeads);
    FillAroundNormal(s.v.data(), nullptr, s.v.size(), 1, 4);
    FillAroundNormal(s.v_hat.data(), s.v.data(), s.v.size(), noise, 5);
    s.inputs.v = s.v.data();
    s.inputs.v_hat = s.v_hat.data();
    s.output = DeviceArray<float>(per_row * kDim);
    s.output_hat = DeviceArray<float>(per_row * kDim);
    s.rows.output = s.output.data();
    s.rows.output_hat = s.output_hat.data();
  }
  // Takes the same number of rows from every part of the context.
  for (int64_t row = 0; row < rows; ++row)
    s.positions.push_back(rows == tokens ? row : (2 * row + 1) * tokens / (2 * rows));
  if (rows != tokens) {
    s.device_positions = DeviceArray<int64_t>(s.positions);
    s.inputs.positions = s.device_positions.data();
  }
  s.workspace = DeviceArray<char>(AttentionKlWorkspace(s.shape, s.options));
  return setup;
}

BenchCheck Check(const Setup& s) {
  std::vector<AttentionKlSample> samples;
  std::vector<size_t> at;
  for (int64_t i = 0; i < kCheckedRows; ++i) {
    const int64_t head = i % kQueryHeads;
    const int64_t row = s.shape.rows - 1 - i * 7919 % s.shape.rows;
    samples.push_back({static_cast<int>(head), s.positions[static_cast<size_t>(row)]});
    at.push_back(static_cast<size_t>(head * s.shape.rows + row));
  }
  const std::vector<AttentionKlRow> expected =
      AttentionKlInFloat64(s.shape, s.options, s.inputs, samples);
  const std::vector<float> kl = s.kl.ToHost(), logits = s.logit_error_sq.ToHost();
  const std::vector<float> output = s.output.ToHost(), output_hat = s.output_hat.ToHost();
  const auto output_error_sq = [&](size_t row) {
    double sum = 0;
    for (size_t i = row * kDim; i < (row + 1) * kDim; ++i)
      sum += std::pow(static_cast<double>(output_hat[i]) - output[i], 2);
    return sum;
  };
  double worst = 0;
  std::string where = "nothing";
  // Compares errors relative to their tolerances. Tensor cores truncate sums, and an output is a
  // sum over all keys, so its tolerance is larger.
  const auto compare = [&](const char* what, double got, double want, size_t i, double tolerance) {
    const double error = std::abs(got - want) / (want + 1e-9) / tolerance;
    if (error <= worst) return;
    worst = error;
    where = fmt::format("{:.1e} of {} of head {}, position {}", error * tolerance, what,
                        samples[i].q_head, samples[i].position);
  };
  for (size_t i = 0; i < samples.size(); ++i) {
    compare("KL", kl[at[i]], expected[i].kl, i, 1e-4);
    compare("logit error", logits[at[i]], expected[i].logit_error_sq, i, 1e-4);
    if (s.options.outputs)
      compare("output error", output_error_sq(at[i]), expected[i].output_error_sq, i, 2e-3);
  }
  return {worst <= 1, fmt::format("{} rows against float64, worst error {}", kCheckedRows, where)};
}

BenchCase Make(int64_t tokens, int64_t rows, double noise, bool outputs, double bar_us) {
  const std::shared_ptr<Setup> setup = MakeSetup(tokens, rows, noise, outputs);
  double pairs = 0;
  for (const int64_t position : setup->positions)
    pairs += static_cast<double>((position + 1) * kQueryHeads);
  BenchCase c;
  c.bytes = static_cast<double>(rows * kQueryHeads * kDim * 2 +
                                tokens * kKvHeads * kDim * (outputs ? 8 : 4));
  c.flops = pairs * static_cast<double>(kDim) * (outputs ? 8 : 4);
  c.peak_tflops = kPeakTflops;
  c.bar_us = bar_us;
  c.buffers = 1;
  c.launch = [setup](cudaStream_t stream, int) {
    AttentionKl(setup->shape, setup->options, setup->inputs, setup->rows, setup->workspace.data(),
                setup->workspace.bytes(), stream);
  };
  c.check = [setup] { return Check(*setup); };
  return c;
}

}  // namespace

std::vector<BenchEntry> AttentionKlBench() {
  std::vector<BenchEntry> entries;
  const auto add = [&](const std::string& name, int64_t tokens, int64_t rows, double noise,
                       bool outputs, double bar_us) {
    entries.push_back(
        {"attention-kl", name, [=] { return Make(tokens, rows, noise, outputs, bar_us); }});
  };
  add("32768 tokens, all rows", 32768, 32768, 0.1, false, 25000);
  add("32768 tokens, all rows, far logits", 32768, 32768, 0.5, false, 25000);
  add("32768 tokens, all rows, outputs", 32768, 32768, 0.1, true, 0);
  add("131072 tokens, 1024 rows", 131072, 1024, 0.1, false, 3000);
  add("131072 tokens, 1024 rows, outputs", 131072, 1024, 0.1, true, 0);
  return entries;
}

}  // namespace oscar
