// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares three forms of the comparison of rows: the loop, tensors in float64, and the kernel,
// whose softmax StreamedComparison splits into parts. Covers windows, blocks, sliding windows, soft
// caps, sinks, GQA, an arm's own rows and queries, and logits far from the reference. Only the
// tensor form supports latents.
#include "export/validate/streamed_comparison.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/calib/cache/row_case.h"

namespace oscar {
namespace {

const at::TensorOptions kGpu(at::kCUDA);

// Rounds the reference rows to bf16.
void RoundRows(RowCase* c) {
  for (at::Tensor* x : {&c->q, &c->k, &c->v}) *x = x->to(at::kBFloat16).to(at::kDouble);
}

RowErrors ErrorsByKernel(const RowCase& c) {
  const auto bf16 = [](const at::Tensor& x) { return x.to(kGpu.dtype(at::kBFloat16)); };
  const auto single = [](const at::Tensor& x) {
    return x.defined() ? x.to(kGpu.dtype(at::kFloat)) : x;
  };
  const AttentionSpec spec = c.Spec();
  EXPECT_TRUE(StreamedComparison::Takes(spec, bf16(c.q), bf16(c.k), bf16(c.v)));
  const StreamedComparison comparison(spec, bf16(c.q), bf16(c.k), bf16(c.v));
  const ExactSides exact[] = {c.exact};
  const at::Tensor own = c.own_queries.defined() ? bf16(c.own_queries) : c.own_queries;
  return comparison.Compare({single(c.stored.k_stored), single(c.stored.v_stored),
                             single(c.stored.k), single(c.stored.v)},
                            own, exact)[0];
}

void Expect(const std::string& name, RowCase c) {
  SCOPED_TRACE(name);
  RoundRows(&c);
  if (c.own_queries.defined()) c.own_queries = c.own_queries.to(at::kBFloat16).to(at::kDouble);
  const RowErrors tensors = ErrorsByTensors(c), kernel = ErrorsByKernel(c);
  ExpectRows(c, tensors, 1e-9, 1e-9);
  ExpectRows(c, kernel, 1e-3, 1e-5);
  const auto expect_sum = [&](at::Tensor RowErrors::*field, const char* what) {
    const double expected = (tensors.*field).sum().item<double>();
    EXPECT_NEAR((kernel.*field).sum(at::kDouble).item<double>(), expected, 1e-4 * expected + 1e-4)
        << what;
  };
  expect_sum(&RowErrors::kl, "KL");
  expect_sum(&RowErrors::output_error_sq, "outputs");
  expect_sum(&RowErrors::k_term_sq, "term of keys");
  expect_sum(&RowErrors::v_term_sq, "term of values");
  expect_sum(&RowErrors::logit_error_sq, "logits");
}

RowCase Near(const RowCase::Dims& dims, double noise) {
  RowCase c(dims);
  RoundRows(&c);
  c.stored.k_stored = c.k + noise * c.stored.k_stored;
  c.stored.v_stored = c.v + noise * c.stored.v_stored;
  return c;
}

TEST(StreamedComparisonGpu, TheThreeFormsAgree) {
  const std::vector<ExactSides> rules = {
      {},
      {ExactInWindows({4, 50}), ExactInWindows({4, 50})},
      {ExactInWindows({64, 256}), ExactUntilBlocksFill(0, 64, 0)},
      {ExactUntilBlocksFill(32, 128, 128), {}},
      {{}, ExactInWindows({0, 30})}};
  for (const RowCase::Dims& dims : {RowCase::Dims{500, 4, 2, 64, 64},
                                    {700, 6, 2, 128, 128},
                                    {1100, 8, 1, 96, 64},
                                    {500, 2, 2, 128, 168}}) {
    for (size_t rule = 0; rule < rules.size(); ++rule) {
      const std::string name = std::to_string(dims.tokens) + " tokens, head dims " +
                               std::to_string(dims.dim) + " and " + std::to_string(dims.v_dim) +
                               ", rule " + std::to_string(rule);
      at::manual_seed(static_cast<uint64_t>(rule));
      RowCase c = Near(dims, rule == 0 ? 2 : 0.3);
      c.exact = rules[rule];
      Expect(name, c);
      c.window = 90;
      c.softcap = 3;
      c.sinks.assign(static_cast<size_t>(dims.q_heads), 1.5F);
      Expect(name + ", window, soft cap and sinks", c);
      // In an end-to-end run, an arm reads its own rows and queries.
      c.stored.k = c.k + 0.1 * c.Random(dims.kv_heads, dims.dim);
      c.stored.v = c.v + 0.1 * c.Random(dims.kv_heads, dims.v_dim);
      c.own_queries = c.q + 0.1 * c.Random(dims.q_heads, dims.dim);
      Expect(name + ", own rows and queries", c);
    }
  }
}

TEST(StreamedComparisonGpu, AnEqualCacheHasNoError) {
  at::manual_seed(1);
  for (const ExactSides& exact :
       {ExactSides{}, ExactSides{ExactInWindows({4, 50}), ExactInWindows({4, 50})}}) {
    RowCase c = Near({500, 6, 2, 128, 128}, 0);
    c.exact = exact;
    c.sinks.assign(6, 1.5F);
    const RowErrors errors = ErrorsByKernel(c);
    EXPECT_EQ(errors.kl.abs().max().item<float>(), 0);
    EXPECT_EQ(errors.logit_error_sq.max().item<float>(), 0);
    EXPECT_EQ(errors.v_term_sq.max().item<float>(), 0);
    EXPECT_LT(errors.output_error_sq.max().item<float>(), 1e-11);  // separate sums: not exactly 0
  }
}

}  // namespace
}  // namespace oscar
