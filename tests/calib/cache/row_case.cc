// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/calib/cache/row_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace oscar {
namespace {

double ScaleOf(const RowCase& c) { return 1.2 / std::sqrt(static_cast<double>(c.dims.dim)); }

bool IsExact(const ExactTokens& tokens, int64_t query, int64_t key) {
  return key < tokens.sink || (tokens.quantized_end && key >= tokens.quantized_end(query + 1));
}

struct Row {
  std::vector<double> p, logits, output;
  double sink_p = 0;
  std::vector<std::vector<double>> values;  // [tokens][v_dim], exact or stored
};

// Computes one row of attention; `key(t, i)` and `value(t, i)` return component i of token t.
Row Attend(const RowCase& c, const at::Tensor& queries, int64_t query, int64_t head, auto key,
           auto value) {
  const auto q = queries.accessor<double, 3>();
  Row row;
  const int64_t first = c.window ? std::max<int64_t>(0, query - *c.window + 1) : 0;
  double largest = -INFINITY, sum = 0;
  const double scale = ScaleOf(c);
  for (int64_t t = first; t <= query; ++t) {
    double logit = 0;
    for (int64_t i = 0; i < c.dims.dim; ++i) logit += q[query][head][i] * key(t, i);
    logit *= scale;
    row.logits.push_back(c.softcap == 0 ? logit : c.softcap * std::tanh(logit / c.softcap));
    largest = std::max(largest, row.logits.back());
    row.values.emplace_back();
    for (int64_t i = 0; i < c.dims.v_dim; ++i) row.values.back().push_back(value(t, i));
  }
  for (const double logit : row.logits) row.p.push_back(std::exp(logit - largest));
  for (const double p : row.p) sum += p;
  if (!c.sinks.empty()) {
    row.sink_p = std::exp(c.sinks[static_cast<size_t>(head)] - largest);
    sum += row.sink_p;
    row.sink_p /= sum;
  }
  const auto v_dim = static_cast<size_t>(c.dims.v_dim);
  row.output.assign(v_dim, 0);
  for (size_t t = 0; t < row.p.size(); ++t) {
    row.p[t] /= sum;
    for (size_t i = 0; i < v_dim; ++i) row.output[i] += row.p[t] * row.values[t][i];
  }
  return row;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace

RowCase::RowCase(const Dims& d)
    : dims(d),
      q(Random(d.q_heads, d.dim)),
      k(Random(d.kv_heads, d.dim)),
      v(Random(d.kv_heads, d.v_dim)),
      stored{Random(d.kv_heads, d.dim), Random(d.kv_heads, d.v_dim), {}, {}} {}

AttentionSpec RowCase::Spec() const {
  AttentionSpec spec;
  spec.num_q_heads = dims.q_heads;
  spec.num_kv_heads = dims.kv_heads;
  spec.head_dim = dims.dim;
  spec.v_head_dim = dims.v_dim;
  spec.scale = ScaleOf(*this);
  spec.window = window;
  spec.softcap = softcap;
  spec.sinks = sinks.empty() ? "" : "sinks";
  spec.sink_logits = sinks;
  return spec;
}

RowErrors ErrorsByTensors(const RowCase& c) {
  const AttentionSpec spec = c.Spec();
  RowComparison comparison(spec, c.k, c.v, at::kDouble);
  comparison.SetRows({at::arange(c.dims.tokens), c.q});
  const ExactSides exact[] = {c.exact};
  return comparison.Compare(comparison.Prepare(c.stored), c.own_queries, exact)[0];
}

void ExpectRows(const RowCase& c, const RowErrors& errors, double relative, double absolute) {
  const auto number = [](const at::Tensor& x, int64_t head, int64_t query) {
    return x.flatten(0, 1)[head][query].item().toDouble();
  };
  const at::Tensor exact_k = c.stored.k.defined() ? c.stored.k : c.k,
                   exact_v = c.stored.v.defined() ? c.stored.v : c.v;
  for (int64_t query : {0, 1, 31, 32, 33, 127, 159, 160, 287, 288, 300, 415, 416, 499}) {
    for (int64_t head = 0; head < c.dims.q_heads; ++head) {
      const int64_t kv = head / (c.dims.q_heads / c.dims.kv_heads);
      const auto of = [&](const at::Tensor& x) {
        return [x, kv, a = x.accessor<double, 3>()](int64_t t, int64_t i) { return a[t][kv][i]; };
      };
      const auto mixed = [&](const ExactTokens& tokens, const at::Tensor& from_exact,
                             const at::Tensor& from_stored) {
        return [&tokens, query, e = of(from_exact), s = of(from_stored)](int64_t t, int64_t i) {
          return IsExact(tokens, query, t) ? e(t, i) : s(t, i);
        };
      };
      const Row row = Attend(c, c.q, query, head, of(c.k), of(c.v));
      const at::Tensor own = c.own_queries.defined() ? c.own_queries : c.q;
      const auto keys = mixed(c.exact.k, exact_k, c.stored.k_stored);
      const Row other =
          Attend(c, own, query, head, keys, mixed(c.exact.v, exact_v, c.stored.v_stored));
      const Row true_values = Attend(c, own, query, head, keys, of(c.v));
      double kl = 0;
      for (size_t t = 0; t < row.p.size(); ++t) kl += row.p[t] * std::log(row.p[t] / other.p[t]);
      if (!c.sinks.empty()) kl += row.sink_p * std::log(row.sink_p / other.sink_p);
      const auto near = [&](const at::Tensor& found, double expected) {
        EXPECT_NEAR(number(found, head, query), expected, relative * std::abs(expected) + absolute)
            << "query " << query << ", head " << head;
      };
      near(errors.kl, kl);
      near(errors.output_error_sq, Distance(other.output, row.output));
      near(errors.logit_error_sq, Distance(other.logits, row.logits));
      near(errors.k_term_sq, Distance(true_values.output, row.output));
      near(errors.v_term_sq, Distance(other.output, true_values.output));
    }
  }
}

}  // namespace oscar
