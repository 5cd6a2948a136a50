// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/statistics_observer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "calib/fit/fit.h"
#include "tests/calib/observe/golden_layer.h"
#include "tests/reference/attention_statistics.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

double RelativeError(const Matrix& a, const Matrix& b) { return (a - b).norm() / b.norm(); }

Matrix HeadOf(const at::Tensor& heads,
              int64_t head) {  // symmetric: row-major and column-major agree
  const std::vector<double> values = Values(heads[head]);
  return Eigen::Map<const Matrix>(values.data(), heads.size(1), heads.size(2));
}

LayerMoments AllMoments(const GoldenLayer& layer, const HeldOutSplit& split) {
  ObservedLayer observed = Observe(layer, split, 16);
  LayerMoments all = observed.fit;
  if (observed.held_out.tokens > 0) all.Merge(observed.held_out);
  std::vector<int64_t> lengths;
  for (const at::Tensor& k : observed.keys) lengths.push_back(k.size(0));
  AddDiagonalTarget(observed.keys, observed.values, lengths, all);
  return all;
}

void ExpectOracle(const std::string& input, const std::string& oracle, int num_layers) {
  OSCAR_PACK_OR_SKIP(input_path, input);
  OSCAR_PACK_OR_SKIP(oracle_path, oracle);
  const SafetensorsFile tensors = SafetensorsFile::Open(input_path),
                        expected = SafetensorsFile::Open(oracle_path);
  for (int id = 0; id < num_layers; ++id) {
    const GoldenLayer layer = ReadGoldenLayer(tensors, id);
    const LayerMoments m = AllMoments(layer, SplitHeldOut({layer.q[0].size(0)}, 0.1));
    const auto oracle_heads = [&](const char* name) {
      return ReadFloat64(expected, "layer." + std::to_string(id) + "." + name);
    };
    for (int64_t head = 0; head < m.num_kv_heads; ++head) {
      EXPECT_LT(RelativeError(m.QueryCovariance(head), HeadOf(oracle_heads("c_q"), head)), 1e-10);
      EXPECT_LT(RelativeError(m.ValueCovariance(head, ValueTarget::kAttentionOutput),
                              HeadOf(oracle_heads("c_v_paper"), head)),
                1e-10);
      EXPECT_LT(RelativeError(m.ValueCovariance(head, ValueTarget::kDiagonal),
                              HeadOf(oracle_heads("c_v_upstream"), head)),
                1e-10);
      EXPECT_LT(RelativeError(m.KeySecondMoment(head), HeadOf(oracle_heads("ktk"), head)), 1e-10);
      EXPECT_LT(RelativeError(m.ValueSecondMoment(head), HeadOf(oracle_heads("vtv"), head)), 1e-10);
    }
    EXPECT_EQ(m.key_abs_max, Values(layer.k[0].abs().amax(0)));
    EXPECT_EQ(m.value_abs_max, Values(layer.v[0].abs().amax(0)));
    for (ValueTarget target : {ValueTarget::kAttentionOutput, ValueTarget::kDiagonal}) {
      const LayerFit fit = FitLayer(m, {.value_target = target});
      for (const SideResult* side : {&fit.k, &fit.v, &fit.k_shared, &fit.v_shared}) {
        EXPECT_NEAR(side->importance_max_over_mean, 1, 1e-12) << "layer " << id;
      }
    }
  }
}

TEST(StatisticsObserver, EqualsTheOracleOnTinyQwen3) {
  ExpectOracle("models/tiny-qwen3/golden.safetensors", "oracle/tiny-qwen3.safetensors", 4);
}

TEST(StatisticsObserver, EqualsTheOracleOnTinyQwen3Of768Tokens) {
  ExpectOracle("oracle/tiny-qwen3-768.input.safetensors", "oracle/tiny-qwen3-768.safetensors", 4);
}

struct Geometry {
  int64_t num_q_heads, num_kv_heads, d, dv;
  std::vector<int64_t> lengths;
  std::optional<int64_t> window;
};

// Lengths exceed the chunk of 1024 tokens, are 1, or are odd. Splits fall inside sequences and
// between them.
TEST(StatisticsObserver, EqualsThePlainReference) {
  const std::vector<Geometry> geometries = {{4, 2, 8, 8, {300}, {}},
                                            {6, 2, 8, 4, {1, 33, 1029}, {}},
                                            {3, 3, 16, 8, {70, 5}, 20},
                                            {8, 1, 4, 12, std::vector<int64_t>(21, 17), {}}};
  for (const Geometry& g : geometries) {
    const GoldenLayer layer =
        RandomLayer(g.num_q_heads, g.num_kv_heads, g.d, g.dv, g.lengths, g.window, 5);
    const LayerMoments m = AllMoments(layer, SplitHeldOut(g.lengths, 0.1));
    int64_t tokens = 0;
    for (int64_t length : g.lengths) tokens += length;
    EXPECT_EQ(m.tokens, tokens);
    const std::vector<double> q = Values(at::cat(layer.q)), k = Values(at::cat(layer.k)),
                              v = Values(at::cat(layer.v));
    const std::vector<HeadStatistics> expected =
        AttentionStatistics(AttentionShape{tokens, g.num_q_heads, g.num_kv_heads, g.d, g.dv},
                            std::span<const double>(q), k, v, g.lengths,
                            {layer.spec.attention.scale, g.window.value_or(0)}, "test");
    for (int64_t head = 0; head < g.num_kv_heads; ++head) {
      const HeadStatistics& e = expected[static_cast<size_t>(head)];
      EXPECT_LT(RelativeError(m.QueryCovariance(head), e.query_covariance), 1e-12);
      EXPECT_LT(RelativeError(m.KeySecondMoment(head), e.key_covariance), 1e-12);
      EXPECT_LT(RelativeError(m.ValueSecondMoment(head), e.value_covariance), 1e-12);
      EXPECT_LT(
          RelativeError(m.ValueCovariance(head, ValueTarget::kAttentionOutput), e.attention_output),
          1e-12);
      EXPECT_LT(RelativeError(m.ValueCovariance(head, ValueTarget::kDiagonal), e.diagonal), 1e-12);
      EXPECT_LT((m.KeyMean(head) - e.key_mean).norm(), 1e-12 * e.key_mean.norm());
    }
  }
}

// Compares with the definition, computed for one row, head and key at a time.
TEST(StatisticsObserver, WeighsKeysByTheAttentionThatTheirQuantizedRowsGet) {
  const int64_t tokens = 120, heads = 2, ratio = 2, d = 8;
  const CacheWindows windows{4, 16};
  const GoldenLayer layer = RandomLayer(heads * ratio, heads, d, 6, {tokens, 10}, {}, 9);
  StatisticsObserver observer(SplitHeldOut({tokens, 10}, 0), 16, 0, 0, windows);
  for (size_t i = 0; i < layer.k.size(); ++i) {
    observer.OnAttention({layer.spec, 0, static_cast<int64_t>(i), 0, layer.q[i], layer.k[i],
                          layer.v[i], layer.attn_out[i]});
  }
  const LayerMoments m = observer.TakeLayer(layer.spec).fit;

  const at::Tensor q = layer.q[0].to(at::kDouble), k = layer.k[0].to(at::kDouble);
  for (int64_t head = 0; head < heads; ++head) {
    const at::Tensor of_head = k.select(1, head);  // [tokens, d]
    double weight = 0;
    at::Tensor first = at::zeros({d}, at::kDouble), second = at::zeros({d, d}, at::kDouble);
    for (int64_t row = windows.sink + windows.recent; row < tokens; ++row) {
      for (int64_t q_head = head * ratio; q_head < (head + 1) * ratio; ++q_head) {
        const at::Tensor logits = of_head.narrow(0, 0, row + 1)
                                      .matmul(q.select(1, q_head)[row])
                                      .mul(layer.spec.attention.scale);
        const std::vector<double> p = Values(at::softmax(logits, 0));
        for (int64_t t = windows.sink; t + windows.recent <= row; ++t) {
          const double w = p[static_cast<size_t>(t)] * (1 - p[static_cast<size_t>(t)]);
          weight += w;
          first.add_(of_head[t], w);
          second.add_(at::outer(of_head[t], of_head[t]), w);
        }
      }
    }
    EXPECT_NEAR(m.attended_key_weight[static_cast<size_t>(head)], weight, 1e-5 * weight);
    const std::vector<double> mean = Values(first.div(weight)), moment = Values(second.div(weight));
    const Vector found_mean = m.CachedKeyMean(head);
    const Matrix found = m.CachedKeySecondMoment(head);
    for (int64_t i = 0; i < d; ++i) {
      EXPECT_NEAR(found_mean[i], mean[static_cast<size_t>(i)], 1e-5);
      for (int64_t j = 0; j < d; ++j)
        EXPECT_NEAR(found(i, j), moment[static_cast<size_t>(i * d + j)], 1e-5);
    }
  }
}

// Other layers read this layer's cache. Readers with equal queries change nothing; with queries
// three times as large, the sums become means over all readers. This holds for fitted and held-out
// tokens alike.
TEST(StatisticsObserver, ReadersOfALayerJoinItsSums) {
  const std::vector<int64_t> lengths = {1500, 33, 2100};
  const GoldenLayer layer = RandomLayer(4, 2, 8, 6, lengths, {}, 9);
  const HeldOutSplit split{HeldOutKind::kTailRows, {1300, 33, 2000}, 300};
  const ObservedLayer alone = Observe(layer, split, 16);
  for (const double factor : {1.0, 3.0}) {
    StatisticsObserver observer(split, 16);
    const auto show = [&](double scale, auto&& call) {
      int64_t first_token = 0;
      for (size_t i = 0; i < lengths.size(); ++i) {
        const at::Tensor q = layer.q[i].mul(scale), out = layer.attn_out[i].mul(scale);
        call(AttentionView{layer.spec, 0, static_cast<int64_t>(i), first_token, q, layer.k[i],
                           layer.v[i], out});
        first_token += lengths[i];
      }
    };
    show(1, [&](const AttentionView& view) { observer.OnAttention(view); });
    for (int reader = 0; reader < 2; ++reader)
      show(factor, [&](const AttentionView& view) { observer.OnSharedAttention(view); });
    const ObservedLayer shared = ReadBack(observer.TakeOnDevice(0), layer.spec);
    const double expected = (1 + 2 * factor * factor) / 3;
    const auto expect = [&](const LayerMoments& found, const LayerMoments& own) {
      EXPECT_EQ(found.tokens, own.tokens);
      EXPECT_EQ(found.key, own.key);
      EXPECT_EQ(found.value, own.value);
      for (size_t i = 0; i < own.query.size(); ++i)
        EXPECT_NEAR(found.query[i], expected * own.query[i], 1e-9 * own.tokens);
      for (size_t i = 0; i < own.attention_output.size(); ++i)
        EXPECT_NEAR(found.attention_output[i], expected * own.attention_output[i],
                    1e-9 * own.tokens);
    };
    expect(shared.fit, alone.fit);
    expect(shared.held_out, alone.held_out);
    expect(shared.first_half, alone.first_half);
    EXPECT_GT(alone.first_half.tokens, 0);
    EXPECT_LT(alone.first_half.tokens, alone.fit.tokens);
  }
}

TEST(StatisticsObserver, CountsTheQueriesThatCount) {
  const std::vector<int64_t> lengths = {1500, 40, 300};
  const GoldenLayer layer = RandomLayer(6, 2, 8, 4, lengths, {}, 3);
  CountedQueries counted = {std::vector<uint8_t>(1500), {}, std::vector<uint8_t>(300)};
  for (size_t i = 0; i < 1500; ++i) counted[0][i] = i % 3 == 0 || i > 1400;
  for (size_t i = 0; i < 300; ++i) counted[2][i] = i > 100;
  const HeldOutSplit split = SplitHeldOut(lengths, 0.2, counted);
  ASSERT_EQ(split.kind, HeldOutKind::kTailRows);
  const ObservedLayer observed = Observe(layer, split, 16);
  const ObservedLayer whole = Observe(layer, SplitHeldOut(lengths, 0), 16);
  LayerMoments all = observed.fit;
  all.Merge(observed.held_out);
  EXPECT_EQ(all.tokens, 1840);
  at::Tensor q, out;  // rows whose queries count
  for (size_t i = 0; i < 3; ++i) {
    const at::Tensor rows = counted[i].empty()
                                ? at::arange(lengths[i], at::kLong)
                                : at::tensor(counted[i], at::kByte).nonzero().flatten();
    const at::Tensor own_q = layer.q[i].index_select(0, rows),
                     own_out = layer.attn_out[i].index_select(0, rows);
    q = i == 0 ? own_q : at::cat({q, own_q});
    out = i == 0 ? own_out : at::cat({out, own_out});
  }
  EXPECT_EQ(all.queries(), q.size(0));
  EXPECT_EQ(observed.fit.queries(), split.NumFitQueries());
  for (int64_t head = 0; head < 2; ++head) {
    const auto covariance = [&](const at::Tensor& x) {  // a mean over the head's queries
      const at::Tensor rows = x.narrow(1, 3 * head, 3).reshape({-1, x.size(2)});
      return HeadOf(at::matmul(rows.t(), rows).div(rows.size(0)).unsqueeze(0), 0);
    };
    EXPECT_LT(RelativeError(all.QueryCovariance(head), covariance(q)), 1e-12);
    EXPECT_LT(
        RelativeError(all.ValueCovariance(head, ValueTarget::kAttentionOutput), covariance(out)),
        1e-12);
    EXPECT_LT(RelativeError(all.KeySecondMoment(head), whole.fit.KeySecondMoment(head)), 1e-12);
    EXPECT_LT(RelativeError(all.ValueSecondMoment(head), whole.fit.ValueSecondMoment(head)), 1e-12);
  }
  for (const HeldOutQueries& queries : observed.queries) {
    const auto sequence = static_cast<size_t>(queries.sequence);
    for (const double row : Values(queries.rows)) {
      EXPECT_GE(row, split.fit_rows[sequence]);
      EXPECT_TRUE(counted[sequence].empty() || counted[sequence][static_cast<size_t>(row)] != 0);
    }
    EXPECT_EQ(queries.rows[-1].item<int64_t>(), lengths[sequence] - 1);
  }
  EXPECT_GT(observed.first_half.queries(), 0);
  EXPECT_LT(observed.first_half.queries(), observed.fit.queries());
}

TEST(StatisticsObserver, KeepsEvenlySpacedHeldOutQueriesWithTheLastRow) {
  const GoldenLayer layer = RandomLayer(4, 2, 8, 8, {200, 50}, {}, 6);
  HeldOutSplit split{HeldOutKind::kTailRows, {100, 45}, 105};
  const ObservedLayer observed = Observe(layer, split, 10);
  ASSERT_EQ(observed.queries.size(), 2u);
  EXPECT_EQ(Values(observed.queries[0].rows),
            (std::vector<double>{109, 119, 129, 139, 149, 159, 169, 179, 189, 199}));
  EXPECT_EQ(Values(observed.queries[1].rows), (std::vector<double>{45, 46, 47, 48, 49}));
  EXPECT_TRUE(observed.queries[0].queries[9].equal(layer.q[0][199]));
  EXPECT_EQ(observed.fit.tokens, 145);
  EXPECT_EQ(observed.held_out.tokens, 105);
}

}  // namespace
}  // namespace oscar
