// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares every weight format of the pack "formats" with the values of its own library, by the
// SHA-256 of each dense weight in float32 and bfloat16. dequantize_test.cc and
// dequantize_words_test.cc check the bits and layouts that the pack lacks.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <vector>

#include "capture/files/atomic_file.h"
#include "capture/files/digest.h"
#include "capture/files/strict_json.h"
#include "capture/model/run/device.h"
#include "capture/model/run/weight_loader.h"
#include "linalg/base/error.h"
#include "tests/capture/model/golden.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns a digest of the values, with -0.0 hashed as +0.0.
std::string ValueDigest(const at::Tensor& x) {
  const at::Tensor dense = x.contiguous().add(0.0);
  return Sha256Hex({static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()});
}

// Loads every weight of dequantized.json. Returns the number of wrong ones.
size_t CountWrong(const std::filesystem::path& model, const Json& expected, at::Device device) {
  const Checkpoint checkpoint = Checkpoint::Open(model);
  WeightLoader in_float(checkpoint, {device, at::kFloat});
  WeightLoader in_bfloat16(checkpoint, {device, at::kBFloat16});
  size_t wrong = 0;
  for (const auto& [name, values] : expected.at("tensors").items()) {
    const at::Tensor x = in_float.Load(name), rounded = in_bfloat16.Load(name);
    in_float.Finish();
    in_bfloat16.Finish();
    const bool exact = x.sizes().vec() == values.at("shape").get<std::vector<int64_t>>() &&
                       ValueDigest(x.cpu()) == values.at("f32_sha256").get<std::string>() &&
                       ValueDigest(rounded.cpu()) == values.at("bf16_sha256").get<std::string>();
    wrong += exact ? 0 : 1;
  }
  return wrong;
}

TEST(WeightFormats, EveryPackIsExact) {
  OSCAR_PACK_OR_SKIP(path, "formats");
  std::vector<at::Device> devices = {at::kCPU};
  if (const at::Device device = ParseDevice("auto"); !device.is_cpu()) devices.push_back(device);
  size_t weights = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (!entry.is_directory()) continue;
    const Json expected = ReadJsonFile((entry.path() / "dequantized.json").string());
    for (const at::Device device : devices)
      EXPECT_EQ(CountWrong(entry.path(), expected, device), 0u) << entry.path() << device;
    weights += expected.at("tensors").size();
  }
  EXPECT_GT(weights, 250u);
  std::cout << "[ formats  ] " << weights << " weights\n";
}

TEST(WeightFormats, EveryFieldThatMattersIsRead) {
  OSCAR_PACK_OR_SKIP(path, "formats");
  struct Flip {
    const char *pack, *field;  // inside quantization_config
    Json value;
  };
  const std::string group = "/config_groups/group_0/weights/",
                    format = "/config_groups/group_0/format";
  const std::string bits = group + "num_bits", strategy = group + "strategy",
                    group_size = group + "group_size", symmetric = group + "symmetric",
                    block = group + "block_structure";
  const Flip flips[] = {{"gptq-4bit-descact", "/checkpoint_format", "gptq_v2"},
                        {"gptq-4bit-descact", "/bits", 8},
                        {"gptq-4bit-descact", "/group_size", 64},
                        {"gptq-8bit", "/bits", 4},
                        {"gptq-v2-asym", "/checkpoint_format", "gptq"},
                        {"gptq-v2-asym", "/group_size", -1},
                        {"awq-gemm", "/group_size", 64},
                        {"awq-gemm", "/quant_method", "gptq"},
                        {"fp8-block", "/weight_block_size", {64, 128}},
                        {"fp8-block", "/weight_block_size", {128, 64}},
                        {"fp8-block", "/weight_block_size", nullptr},
                        {"ct-float-block", block.c_str(), {128, 64}},
                        {"ct-float-channel", strategy.c_str(), "tensor"},
                        {"ct-float-tensor", strategy.c_str(), "channel"},
                        {"ct-int8-channel", format.c_str(), "float-quantized"},
                        {"ct-pack-w4a16", bits.c_str(), 8},
                        {"ct-pack-w4a16", group_size.c_str(), 64},
                        {"ct-pack-w4a16-asym", symmetric.c_str(), true},
                        {"ct-pack-w4a16", symmetric.c_str(), false},
                        {"ct-nvfp4", format.c_str(), "mxfp4-pack-quantized"},
                        {"modelopt-fp8", "/quant_algo", "NVFP4"},
                        {"modelopt-nvfp4", "/quant_algo", "FP8"},
                        {"mxfp4-gpt-oss", "/quant_method", "fp8"}};
  for (const Flip& flip : flips) {
    const auto model = TestScratch("flipped");
    std::filesystem::create_symlink(path / flip.pack / "model.safetensors",
                                    model / "model.safetensors");
    Json config = ReadJsonFile((path / flip.pack / "config.json").string());
    config["quantization_config"][Json::json_pointer(flip.field)] = flip.value;
    WriteFileAtomically(model / "config.json", config.dump());
    size_t wrong = 0;
    try {
      wrong = CountWrong(model, ReadJsonFile((path / flip.pack / "dequantized.json").string()),
                         at::kCPU);
    } catch (const InputError&) {
      wrong = 1;
    }
    EXPECT_GT(wrong, 0u) << flip.pack << " " << flip.field;
  }
}

// The contract is 2e-4 (logits 1e-3), but a correct float32 run is ten times closer.
TEST(WeightFormats, EveryPackRunsAsTheReferenceDoes) {
  OSCAR_PACK_OR_SKIP(path, "formats");
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (!entry.is_directory()) continue;
    const GoldenErrors errors = CompareWithGolden(entry.path());
    EXPECT_EQ(errors.of.size(), 4u * 2 + 1) << entry.path();
    EXPECT_LT(errors.worst, 2e-5) << entry.path() << " " << errors.worst_name;
    std::cout << "[ formats  ] " << entry.path().filename().string() << ": worst " << errors.worst
              << " (" << errors.worst_name << "), logits " << errors.Logits() << "\n";
  }
}

}  // namespace
}  // namespace oscar
