// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/cuda/gram_host.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace oscar {
namespace {

constexpr const char* kTypeNames[] = {"bf16", "f16", "f32"};

// `value` rounded to the type at `place`; what it became.
double Store(float value, RowType type, uint8_t* place) {
  const auto put = [&](const auto& stored) { std::memcpy(place, &stored, sizeof(stored)); };
  switch (type) {
    case RowType::kBFloat16: {
      const __nv_bfloat16 rounded = __float2bfloat16_rn(value);
      put(rounded);
      return __bfloat162float(rounded);
    }
    case RowType::kFloat16: {
      const __half rounded = __float2half_rn(value);
      put(rounded);
      return __half2float(rounded);
    }
    case RowType::kFloat32:
      break;
  }
  put(value);
  return value;
}

float Draw(RowsKind kind, int feature, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  const double x = normal(generator);
  if (kind == RowsKind::kLargeMean) return static_cast<float>((feature % 3 == 0 ? -50 : 50) + x);
  if (kind == RowsKind::kHeavyTails)
    return static_cast<float>(
        std::clamp(x / std::pow(std::abs(normal(generator)), 1.5), -1e4, 1e4));
  return static_cast<float>(x);
}

}  // namespace

std::string Describe(const RowsShape& shape) {
  return fmt::format("{} tokens, {} heads over {} KV heads of {} {}, gaps {} and {}",
                     shape.num_tokens, shape.num_heads, shape.num_kv_heads, shape.dim,
                     kTypeNames[static_cast<int>(shape.type)], shape.head_gap, shape.token_gap);
}

const char* RowsKindName(RowsKind kind) {
  constexpr const char* kNames[] = {"normal", "large mean", "heavy tails"};
  return kNames[static_cast<int>(kind)];
}

TestRows MakeRows(const RowsShape& shape, RowsKind kind, uint64_t seed) {
  std::mt19937_64 generator(seed);
  TestRows x;
  const int64_t head_stride = shape.dim + shape.head_gap;
  const int64_t token_stride = shape.num_heads * head_stride + shape.token_gap;
  const int64_t size = RowTypeBytes(shape.type);
  std::vector<uint8_t> memory(static_cast<size_t>(shape.num_tokens * token_stride * size), 0xFF);
  for (int64_t token = 0; token < shape.num_tokens; ++token) {
    for (int64_t head = 0; head < shape.num_heads; ++head) {
      for (int feature = 0; feature < shape.dim; ++feature) {
        const int64_t index = token * token_stride + head * head_stride + feature;
        x.values.push_back(
            Store(Draw(kind, feature, generator), shape.type, memory.data() + index * size));
      }
    }
  }
  x.memory = DeviceArray<uint8_t>(memory);
  x.rows = {.data = x.memory.data(),
            .type = shape.type,
            .num_tokens = shape.num_tokens,
            .num_heads = shape.num_heads,
            .num_kv_heads = shape.num_kv_heads,
            .dim = shape.dim,
            .token_stride = token_stride,
            .head_stride = head_stride};
  return x;
}

std::vector<double> HostGram(const TestRows& x, const std::vector<double>& weights) {
  const int64_t dim = x.rows.dim, heads = x.rows.num_heads, ratio = x.rows.gqa_ratio();
  std::vector<double> sums(static_cast<size_t>(x.rows.num_kv_heads * dim * dim));
  for (int64_t token = 0; token < x.rows.num_tokens; ++token) {
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t kv_head = head / ratio;
      const double* row = x.values.data() + (token * heads + head) * dim;
      const double weight =
          weights.empty() ? 1 : weights[static_cast<size_t>(token * x.rows.num_kv_heads + kv_head)];
      double* sum = sums.data() + kv_head * dim * dim;
      for (int64_t i = 0; i < dim; ++i) {
        const double left = weight * row[i];
        for (int64_t j = 0; j < dim; ++j) sum[i * dim + j] += left * row[j];
      }
    }
  }
  return sums;
}

GramError WorstGramError(const std::vector<double>& a, const std::vector<double>& b, int dim) {
  const auto size = static_cast<size_t>(dim);
  GramError error;
  for (size_t index = 0; index < b.size(); ++index) {
    const size_t matrix = index / (size * size), i = index / size % size, j = index % size;
    const double* diagonal = b.data() + matrix * size * size;
    const double relative =
        std::abs(a[index] - b[index]) / std::sqrt(diagonal[i * size + i] * diagonal[j * size + j]);
    if (error.where.empty() || !(relative <= error.worst))
      error = {relative, fmt::format("KV head {}, ({}, {})", matrix, i, j)};
  }
  return error;
}

}  // namespace oscar
