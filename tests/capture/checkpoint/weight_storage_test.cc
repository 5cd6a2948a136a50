// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests which stored tensors make up a weight, and that tensors which do not fit together are
// refused. capture/model/dequantize_test.cc tests the values.
#include "capture/checkpoint/weight_storage.h"

#include <gtest/gtest.h>

#include <functional>

#include "linalg/base/error.h"
#include "tests/capture/checkpoint/stored_weights.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

using Shape = std::vector<int64_t>;

void AddZeros(StoredWeights& stored, const std::string& name, DType dtype, const Shape& shape) {
  int64_t bytes = DTypeBytes(dtype);
  for (const int64_t size : shape) bytes *= size;
  stored.Add(name, dtype, shape, std::vector<char>(static_cast<size_t>(bytes)));
}

Json PackedConfig(bool symmetric, bool ordered) {
  Json weights = {
      {"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}, {"symmetric", symmetric}};
  if (ordered) weights["actorder"] = "group";
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"config_groups", {{"a", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

// Returns valid tensors of a weight [N, K] = [24, 64] in the given format.
StoredWeights SoundWeights(const std::string& format) {
  StoredWeights stored;
  if (format == "gptq") {
    stored.quantization = {
        {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}};
    AddZeros(stored, "m.qweight", DType::kI32, {8, 24});
    AddZeros(stored, "m.qzeros", DType::kI32, {2, 3});
    AddZeros(stored, "m.scales", DType::kF16, {2, 24});
    AddZeros(stored, "m.g_idx", DType::kI32, {64});
  } else if (format == "awq") {
    stored.quantization = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}};
    AddZeros(stored, "m.qweight", DType::kI32, {64, 3});
    AddZeros(stored, "m.qzeros", DType::kI32, {2, 3});
    AddZeros(stored, "m.scales", DType::kF16, {2, 24});
  } else if (format == "packed") {
    stored.quantization = PackedConfig(false, true);
    AddZeros(stored, "m.weight_packed", DType::kI32, {24, 8});
    AddZeros(stored, "m.weight_scale", DType::kBF16, {24, 2});
    AddZeros(stored, "m.weight_zero_point", DType::kI32, {3, 2});
    AddZeros(stored, "m.weight_g_idx", DType::kI32, {64});
    stored.Add("m.weight_shape", DType::kI64, {2}, std::vector<int64_t>{24, 64});
  } else if (format == "fp8") {
    stored.quantization = {{"quant_method", "fp8"}, {"weight_block_size", {16, 48}}};
    AddZeros(stored, "m.weight", DType::kF8E4M3, {24, 64});
    AddZeros(stored, "m.weight_scale_inv", DType::kF32, {2, 2});
  } else if (format == "nvfp4") {
    stored.quantization = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}};
    AddZeros(stored, "m.weight", DType::kU8, {24, 32});
    AddZeros(stored, "m.weight_scale", DType::kF8E4M3, {24, 4});
    AddZeros(stored, "m.weight_scale_2", DType::kF32, {});
  } else {
    stored.quantization = {{"quant_method", "mxfp4"}};
    AddZeros(stored, "m.weight_packed", DType::kU8, {24, 32});
    AddZeros(stored, "m.weight_scale", DType::kU8, {24, 2});
  }
  return stored;
}

std::string StorageProblem(const StoredWeights& stored) {
  return ErrorOf<InputError>([&] {
    const Checkpoint checkpoint = stored.Write("storage");
    CheckGroupIndex(checkpoint, FindWeightStorage(checkpoint, "m.weight"));
  });
}

constexpr const char* kFormats[] = {"gptq", "awq", "packed", "fp8", "nvfp4", "mxfp4"};

TEST(WeightStorage, FindsShapePartsAndBytes) {
  for (const char* format : kFormats) {
    const StoredWeights stored = SoundWeights(format);
    const Checkpoint checkpoint = stored.Write("storage");
    const WeightStorage storage = FindWeightStorage(checkpoint, "m.weight");
    EXPECT_EQ(storage.shape, (Shape{24, 64})) << format;
    EXPECT_EQ(storage.parts.size() + storage.also_read.size(), stored.tensors.size()) << format;
    uint64_t bytes = 0;
    for (const auto& [name, tensor] : stored.tensors)
      bytes += name == "m.weight_shape" ? 0 : tensor.data.size();
    EXPECT_EQ(storage.bytes(), bytes) << format;
    EXPECT_FALSE(storage.plain());
    EXPECT_TRUE(StoresWeight(checkpoint, "m.weight"));
    EXPECT_FALSE(StoresWeight(checkpoint, "n.weight"));
  }
}

TEST(WeightStorage, StoredTypesDecideWhatIsPlain) {
  StoredWeights stored = SoundWeights("gptq");
  AddZeros(stored, "router.weight", DType::kBF16, {4, 64});
  const WeightStorage storage = FindWeightStorage(stored.Write("storage"), "router.weight");
  EXPECT_TRUE(storage.plain());
  EXPECT_EQ(storage.scheme.name, "BF16");
}

TEST(WeightStorage, EveryDamageNamesItsTensor) {
  for (const char* format : kFormats) {
    const StoredWeights sound = SoundWeights(format);
    EXPECT_EQ(StorageProblem(sound), "") << format;
    for (const auto& [name, tensor] : sound.tensors) {
      const auto expect = [&](const char* damage, const std::function<void(StoredWeights&)>& edit) {
        StoredWeights damaged = sound;
        edit(damaged);
        const std::string problem = StorageProblem(damaged);
        EXPECT_NE(problem, "") << format << ": " << name << " " << damage;
        // The message may name another tensor of m, whose shape has to fit.
        EXPECT_TRUE(Says(problem, "tensor m."));
      };
      expect("missing", [&](StoredWeights& stored) { stored.tensors.erase(name); });
      expect("of another type",
             [&](StoredWeights& stored) { AddZeros(stored, name, DType::kF64, tensor.shape); });
      Shape longer = tensor.shape, deeper = tensor.shape;
      if (longer.empty()) longer.push_back(2);
      longer.back() += 100;
      deeper.push_back(2);
      expect("longer",
             [&](StoredWeights& stored) { AddZeros(stored, name, tensor.dtype, longer); });
      expect("deeper",
             [&](StoredWeights& stored) { AddZeros(stored, name, tensor.dtype, deeper); });
      Shape empty = tensor.shape;
      if (empty.empty()) empty.push_back(0);
      empty[0] = 0;
      expect("empty", [&](StoredWeights& stored) { AddZeros(stored, name, tensor.dtype, empty); });
    }
  }
}

TEST(WeightStorage, GroupIndexIsChecked) {
  for (const auto& [format, name] :
       {std::pair{"gptq", "m.g_idx"}, std::pair{"packed", "m.weight_g_idx"}}) {
    for (const int32_t entry : {-1, 2, INT32_MAX, INT32_MIN}) {
      StoredWeights stored = SoundWeights(format);
      std::vector<int32_t> groups(64);
      groups[37] = entry;
      stored.Add(name, DType::kI32, {64}, groups);
      const std::string problem = StorageProblem(stored);
      EXPECT_TRUE(Says(problem, name));
      EXPECT_TRUE(Says(problem, "entry 37"));
    }
  }
}

TEST(WeightStorage, GroupsThatDoNotDivide) {
  StoredWeights packed = SoundWeights("packed");
  packed.quantization["config_groups"]["a"]["weights"]["group_size"] = 48;
  EXPECT_TRUE(Says(StorageProblem(packed), "m.weight_packed has shape"));
  StoredWeights awq = SoundWeights("awq");
  awq.quantization["group_size"] = 48;
  EXPECT_TRUE(Says(StorageProblem(awq), "the group size 48"));
}

TEST(WeightStorage, ShapeOfPackedWordsIsHostile) {
  StoredWeights sound = SoundWeights("packed");
  sound.quantization["config_groups"]["a"]["weights"] = {{"num_bits", 4}, {"strategy", "channel"}};
  for (const char* name : {"m.weight_g_idx", "m.weight_zero_point"}) sound.tensors.erase(name);
  AddZeros(sound, "m.weight_scale", DType::kBF16, {24, 1});
  EXPECT_EQ(StorageProblem(sound), "");
  for (const int64_t columns : {int64_t{0}, int64_t{-64}, INT64_MAX, int64_t{56}, int64_t{65}}) {
    StoredWeights stored = sound;
    stored.Add("m.weight_shape", DType::kI64, {2}, std::vector<int64_t>{24, columns});
    EXPECT_NE(StorageProblem(stored), "") << columns;
  }
}

TEST(WeightStorage, ThreeBitZeroPointsOfUnknownConvention) {
  StoredWeights stored;
  stored.quantization = {{"quant_method", "gptq"}, {"bits", 3}, {"group_size", -1}, {"sym", false}};
  AddZeros(stored, "m.qweight", DType::kI32, {6, 32});
  AddZeros(stored, "m.qzeros", DType::kI32, {1, 3});
  AddZeros(stored, "m.scales", DType::kF16, {1, 32});
  EXPECT_TRUE(Says(StorageProblem(stored), "meta.quantizer"));
  for (const char* writer : {"gptqmodel:6.0.3", "gptqmodel:7.0.0", "gptqmodel:7.3.4"}) {
    stored.quantization["meta"] = {{"quantizer", writer}};
    EXPECT_EQ(StorageProblem(stored), "") << writer;
  }
  // Development versions between the two, and texts that are not versions, are refused.
  for (const char* version : {"6.1.0-dev", "6.1.0.dev0", "7.0.0-dev", "7.0.0rc1", "", "main"}) {
    stored.quantization["meta"] = {{"quantizer", {std::string("gptqmodel:") + version}}};
    const std::string problem = StorageProblem(stored);
    EXPECT_TRUE(Says(problem, "m.qzeros")) << version;
    EXPECT_TRUE(Says(problem, "up to 6.0.3"));
  }
  stored.quantization["sym"] = true;
  EXPECT_TRUE(Says(StorageProblem(stored), "zero point 4"));
}

// GPTQModel 1.8 and 1.9 stored only the first 32 zero points (three words) of each 3-bit row.
TEST(WeightStorage, ThreeBitZeroPointsThatWereNeverWritten) {
  StoredWeights stored;
  AddZeros(stored, "m.qweight", DType::kI32, {6, 64});
  AddZeros(stored, "m.qzeros", DType::kI32, {1, 6});
  AddZeros(stored, "m.scales", DType::kF16, {1, 64});
  for (const char* format : {"gptq", "gptq_v2"}) {
    for (const char* version : {"1.8.0", "1.8.1", "1.9.0", "2.0.0-dev"}) {
      stored.quantization = {{"quant_method", "gptq"},
                             {"bits", 3},
                             {"group_size", -1},
                             {"sym", false},
                             {"checkpoint_format", format},
                             {"meta", {{"quantizer", {std::string("gptqmodel:") + version}}}}};
      EXPECT_TRUE(Says(StorageProblem(stored), "first 32 zero points")) << version;
    }
    stored.quantization["meta"]["quantizer"] = {"gptqmodel:2.0.0"};
    EXPECT_EQ(StorageProblem(stored), "");
  }
}

// Builds that call themselves 7.3.1 exist from before and after GPTQModel changed how it stores the
// zero points of a module that has its own bits.
TEST(WeightStorage, MixedBitsOfAVersionThatCannotSay) {
  StoredWeights stored;
  AddZeros(stored, "m.qweight", DType::kI32, {16, 32});
  AddZeros(stored, "m.qzeros", DType::kI32, {1, 8});
  AddZeros(stored, "m.scales", DType::kF16, {1, 32});
  stored.quantization = {{"quant_method", "gptq"},
                         {"bits", 4},
                         {"group_size", -1},
                         {"sym", false},
                         {"dynamic", {{"+:m", {{"bits", 8}}}}}};
  EXPECT_EQ(StorageProblem(stored), "");
  for (const char* version : {"7.3.0", "7.3.2", "8.0.0-dev"}) {
    stored.quantization["meta"] = {{"quantizer", {std::string("gptqmodel:") + version}}};
    EXPECT_EQ(StorageProblem(stored), "") << version;
  }
  for (const char* version : {"7.3.1", "7.3.2-dev", "?"}) {
    stored.quantization["meta"] = {{"quantizer", {std::string("gptqmodel:") + version}}};
    EXPECT_TRUE(Says(StorageProblem(stored), "from 7.3.2")) << version;
  }
}

TEST(WeightStorage, WithoutAConfigItIsRefused) {
  StoredWeights stored = SoundWeights("fp8");
  stored.quantization = nullptr;
  const std::string problem = StorageProblem(stored);
  EXPECT_TRUE(Says(problem, "F8_E4M3"));
  EXPECT_TRUE(Says(problem, "no quantization_config"));
  stored = SoundWeights("packed");
  stored.quantization["ignore"] = {"m"};
  EXPECT_TRUE(Says(StorageProblem(stored), "m.weight is missing"));
  stored = SoundWeights("nvfp4");
  stored.quantization["ignore"] = {"m"};
  EXPECT_TRUE(Says(StorageProblem(stored), "specifies no weight format for its module"));
}

TEST(WeightStorage, SlicesOfStackedExpertsReadTheirBytesAlone) {
  StoredWeights stored;
  stored.quantization = {{"quant_method", "mxfp4"}};
  AddZeros(stored, "e.gate_up_proj_blocks", DType::kU8, {5, 6, 2, 16});
  AddZeros(stored, "e.gate_up_proj_scales", DType::kU8, {5, 6, 2});
  const Checkpoint checkpoint = stored.Write("storage");
  const WeightStorage whole = FindWeightStorage(checkpoint, "e.gate_up_proj");
  EXPECT_EQ(whole.shape, (Shape{5, 64, 6}));
  const WeightStorage slice = SliceStorage(whole, 3, 2);
  EXPECT_EQ(slice.shape, (Shape{2, 64, 6}));
  EXPECT_EQ(slice.bytes() * 5, whole.bytes() * 2);
  EXPECT_EQ(slice.parts[0].begin, 3u * 6 * 2 * 16);
  EXPECT_EQ(slice.parts[1].begin, 3u * 6 * 2);
}

}  // namespace
}  // namespace oscar
