// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares formats of one or half a byte per code (float8, int8, MXFP4, NVFP4) with a scalar
// implementation, for shapes, scale types and stacked experts that no model of the pack "formats"
// has.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "capture/model/run/weight_loader.h"
#include "tests/capture/model/scalar_weights.h"

namespace oscar {
namespace {

// ---- float8 and int8 codes with scales

void ExpectScaled(Json quantization, const std::string& scale_name, DType scale_type,
                  int64_t experts, int64_t rows, int64_t columns, int64_t block_rows,
                  int64_t block_columns) {
  const std::vector<int64_t> lead = experts == 0 ? std::vector<int64_t>() : std::vector{experts};
  const int64_t matrices = std::max<int64_t>(1, experts);
  const auto with = [&](int64_t a, int64_t b) {
    std::vector<int64_t> shape = lead;
    shape.insert(shape.end(), {a, b});
    return shape;
  };
  const int64_t down = (rows + block_rows - 1) / block_rows,
                across = (columns + block_columns - 1) / block_columns;
  const Ints codes = RandomInts(matrices * rows * columns, 0, 0x7e);
  StoredWeights stored;
  stored.quantization = std::move(quantization);
  stored.Add(kWeight, DType::kF8E4M3, with(rows, columns),
             std::vector<uint8_t>(codes.begin(), codes.end()));
  const Floats scales = AddScales(stored, scale_name, with(down, across), scale_type);
  const Floats expected = Dense(matrices * rows, columns, [&](size_t row, size_t k) {
    const auto expert = static_cast<int64_t>(row) / rows, n = static_cast<int64_t>(row) % rows;
    const int64_t at =
        (expert * down + n / block_rows) * across + static_cast<int64_t>(k) / block_columns;
    return FromE4m3(codes[row * static_cast<size_t>(columns) + k]) *
           scales[static_cast<size_t>(at)];
  });
  ExpectLoads(stored, with(rows, columns), expected,
              fmt::format("fp8 {} x {} x {}", experts, rows, columns));
}

TEST(Dequantize, Float8InBlocks) {
  const Json config = {{"quant_method", "fp8"}, {"weight_block_size", {48, 40}}};
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E8M0}) {
    ExpectScaled(config, "m.weight_scale_inv", type, 0, 100, 90, 48, 40);
    ExpectScaled(config, "m.weight_scale_inv", type, 3, 100, 90, 48, 40);
  }
  ExpectScaled(config, "m.weight_scale_inv", DType::kF32, 0, 40, 30, 48, 40);
  ExpectScaled(config, "m.weight_scale_inv", DType::kF32, 0, 608, 512, 48, 40);
}

TEST(Dequantize, Float8PerTensorAndRow) {
  const Json config = {{"quant_method", "fp8"}, {"activation_scheme", "static"}};
  ExpectScaled(config, "m.weight_scale_inv", DType::kBF16, 0, 20, 30, 20, 30);
  ExpectScaled(config, "m.weight_scale", DType::kF32, 0, 20, 30, 1, 30);
  ExpectScaled({{"quant_method", "fbgemm_fp8"}}, "m.weight_scale", DType::kF32, 0, 20, 30, 1, 30);
  const Json modelopt = {{"quant_method", "modelopt"}, {"quant_algo", "FP8_PB_WO"}};
  ExpectScaled(modelopt, "m.weight_scale", DType::kF32, 0, 150, 140, 128, 128);
}

TEST(Dequantize, Int8WithZeroPoints) {
  constexpr int64_t kRows = 20, kColumns = 36, kGroups = 3;
  const Ints codes = RandomInts(kRows * kColumns, -128, 127);
  const Ints zeros = RandomInts(kRows * kGroups, -128, 127);
  StoredWeights stored;
  stored.quantization = Json::parse(R"({"quant_method": "compressed-tensors",
    "format": "int-quantized", "config_groups": {"a": {"targets": ["Linear"], "weights":
    {"num_bits": 8, "type": "int", "symmetric": false, "strategy": "group", "group_size": 12}}}})");
  stored.Add(kWeight, DType::kI8, {kRows, kColumns},
             std::vector<int8_t>(codes.begin(), codes.end()));
  stored.Add("m.weight_zero_point", DType::kI8, {kRows, kGroups},
             std::vector<int8_t>(zeros.begin(), zeros.end()));
  const Floats scales = AddScales(stored, "m.weight_scale", {kRows, kGroups}, DType::kF32);
  const Floats expected = Dense(kRows, kColumns, [&](size_t n, size_t k) {
    const size_t at = n * kGroups + k / 12;
    return static_cast<float>(codes[n * kColumns + k] - zeros[at]) * scales[at];
  });
  ExpectLoads(stored, {kRows, kColumns}, expected, "int8");
}

// ---- E2M1

// Adds random FP4 codes, two per byte. Returns their values.
Floats AddFp4(StoredWeights& stored, const std::string& name, std::vector<int64_t> shape) {
  const int64_t bytes =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  const Ints pairs = RandomInts(bytes, 0, 255);
  Floats values;
  for (const int pair : pairs) {
    values.push_back(FromE2m1(pair & 15));
    values.push_back(FromE2m1(pair >> 4));
  }
  stored.Add(name, DType::kU8, std::move(shape), std::vector<uint8_t>(pairs.begin(), pairs.end()));
  return values;
}

TEST(Dequantize, Nvfp4OfBothConventions) {
  constexpr int64_t kRows = 40, kColumns = 48;
  for (const bool divides : {true, false}) {
    StoredWeights stored;
    stored.quantization = Json::parse(divides ? R"({"quant_method": "compressed-tensors",
      "format": "nvfp4-pack-quantized", "config_groups": {"a": {"targets": ["Linear"], "weights":
      {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}})"
                                              : R"({"quant_method": "modelopt",
      "quant_algo": "NVFP4", "group_size": 16})");
    const Floats codes =
        AddFp4(stored, divides ? "m.weight_packed" : kWeight, {kRows, kColumns / 2});
    const Floats scales =
        AddScales(stored, "m.weight_scale", {kRows, kColumns / 16}, DType::kF8E4M3);
    const Floats global =
        AddScales(stored, divides ? "m.weight_global_scale" : "m.weight_scale_2",
                  divides ? std::vector<int64_t>{1} : std::vector<int64_t>(), DType::kF32);
    const Floats expected = Dense(kRows, kColumns, [&](size_t n, size_t k) {
      const float scale = scales[n * (kColumns / 16) + k / 16];
      const float both = divides ? scale / global[0] : scale * global[0];
      return codes[n * kColumns + k] * both;
    });
    ExpectLoads(stored, {kRows, kColumns}, expected, divides ? "nvfp4, divides" : "nvfp4");
  }
}

TEST(Dequantize, Mxfp4Matrix) {
  constexpr int64_t kRows = 20, kColumns = 64;
  StoredWeights stored;
  stored.quantization = {{"quant_method", "mxfp4"}};
  const Floats codes = AddFp4(stored, "m.weight_packed", {kRows, kColumns / 2});
  Ints exponents = RandomInts(kRows * 2, 100, 150);
  exponents[0] = 0;
  exponents[1] = 254;
  stored.Add("m.weight_scale", DType::kU8, {kRows, 2},
             std::vector<uint8_t>(exponents.begin(), exponents.end()));
  const Floats expected = Dense(kRows, kColumns, [&](size_t n, size_t k) {
    return codes[n * kColumns + k] * std::ldexp(1.0F, exponents[n * 2 + k / 32] - 127);
  });
  ExpectLoads(stored, {kRows, kColumns}, expected, "mxfp4");
}

TEST(Dequantize, Mxfp4StackedExpertsAreTransposed) {
  constexpr int64_t kExperts = 4, kRows = 24, kColumns = 64;
  const std::string name = "m.experts.gate_up_proj";
  StoredWeights stored;
  stored.quantization = {{"quant_method", "mxfp4"}};
  const Floats codes = AddFp4(stored, name + "_blocks", {kExperts, kRows, kColumns / 32, 16});
  const Ints exponents = RandomInts(kExperts * kRows * 2, 100, 150);
  stored.Add(name + "_scales", DType::kU8, {kExperts, kRows, 2},
             std::vector<uint8_t>(exponents.begin(), exponents.end()));
  const Checkpoint checkpoint = stored.Write("mxfp4");
  WeightLoader loader(checkpoint, {});
  const at::Tensor whole = loader.Load(name), some = loader.Load(name, 1, 2);
  ASSERT_EQ(whole.sizes().vec(), (std::vector<int64_t>{kExperts, kColumns, kRows}));
  for (int64_t e = 0; e < kExperts; ++e) {
    for (int64_t k = 0; k < kColumns; ++k) {
      for (int64_t n = 0; n < kRows; ++n) {
        const auto at = static_cast<size_t>((e * kRows + n) * kColumns + k);
        const auto scale = static_cast<size_t>((e * kRows + n) * 2 + k / 32);
        ASSERT_EQ(whole.const_data_ptr<float>()[(e * kColumns + k) * kRows + n],
                  codes[at] * std::ldexp(1.0F, exponents[scale] - 127));
      }
    }
  }
  EXPECT_TRUE(some.equal(whole.narrow(0, 1, 2)));
}

}  // namespace
}  // namespace oscar
