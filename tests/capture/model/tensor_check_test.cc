// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "capture/model/spec/model_spec.h"
#include "linalg/base/error.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns the message of CheckTensors for a changed copy of a pack, or "" if it is accepted.
std::string TensorProblem(const char* model, const std::function<void(TensorMap&)>& change) {
  const auto directory = TestScratch("tensors");
  CopyWeights(TestData(model), directory, change);
  const ModelSpec spec = ReadModelSpec(TestData(model));
  return ErrorOf<InputError>([&] { CheckTensors(spec, Checkpoint::Open(directory)); });
}

TEST(CheckTensors, CompleteModelsFit) {
  EXPECT_EQ(TensorProblem("arch/llama", [](TensorMap&) {}), "");
  EXPECT_EQ(TensorProblem("arch/qwen2-swa", [](TensorMap&) {}), "");
}

TEST(CheckTensors, NamesWhatIsMissing) {
  const std::string name = "model.layers.1.self_attn.k_proj.bias";
  EXPECT_TRUE(Says(
      TensorProblem("arch/qwen2-swa", [&](TensorMap& tensors) { tensors.erase(name); }), name));
}

TEST(CheckTensors, NamesAWrongShape) {
  const std::string name = "model.layers.2.self_attn.v_proj.weight";
  const std::string message = TensorProblem("arch/llama", [&](TensorMap& tensors) {
    tensors[name].shape = {32, 128};
  });
  EXPECT_TRUE(Says(message, name));
  EXPECT_TRUE(Says(message, "[32, 128]"));
  EXPECT_TRUE(Says(message, "[64, 64]"));
}

TEST(CheckTensors, NamesAWeightFormatThatIsNotImplemented) {
  const std::string message = TensorProblem("arch/llama", [](TensorMap& tensors) {
    StoredBytes& weight = tensors["model.layers.0.mlp.up_proj.weight"];
    weight.dtype = DType::kF8E4M3;
    weight.data.resize(weight.data.size() / 2);
  });
  EXPECT_TRUE(Says(message, "F8_E4M3"));
  EXPECT_TRUE(Says(message, "BF16, F16, F32"));
}

TEST(CheckTensors, RefusesTensorsOfNoUse) {
  for (const char* name :
       {"model.layers.3.mlp.up_proj.weight", "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.self_attn.sinks", "model.layers.0.mlp.up_proj.weight_scale",
        "score.weight"}) {
    EXPECT_TRUE(Says(
        TensorProblem("arch/llama",
                      [&](TensorMap& tensors) { tensors[name] = tensors["model.norm.weight"]; }),
        name));
  }
}

TEST(CheckTensors, SkipsWhatTheFamilySkips) {
  const auto add = [](const char* name) {
    return [name](TensorMap& tensors) { tensors[name] = tensors["model.norm.weight"]; };
  };
  EXPECT_EQ(TensorProblem("arch/llama", add("model.layers.0.self_attn.rotary_emb.inv_freq")), "");
  EXPECT_EQ(TensorProblem("tiny-qwen3", add("lm_head.weight")), "");
}

TEST(CheckTensors, ManyProblemsAreCounted) {
  const std::string message = TensorProblem("arch/llama", [](TensorMap& tensors) {
    std::erase_if(tensors, [](const auto& entry) {
      return entry.first.find("self_attn") != std::string::npos;
    });
  });
  EXPECT_TRUE(Says(message, "and 7 more"));
}

TEST(CheckTensors, StoredDTypeIsThatOfMostBytes) {
  EXPECT_EQ(
      StoredDType(ReadModelSpec(TestData("arch/llama")), Checkpoint::Open(TestData("arch/llama"))),
      DType::kBF16);
}

StoredBytes Zeros(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = DTypeBytes(dtype);
  for (const int64_t size : shape) bytes *= size;
  return {dtype, shape, std::vector<std::byte>(static_cast<size_t>(bytes))};
}

constexpr const char* kQ = "model.layers.1.self_attn.q_proj.";

// A small model in which layer 1's query projection is quantized, and then changed by `change`.
struct QuantizedWeights {
  QuantizedWeights(const Json& quantization, const std::function<void(TensorMap&)>& change)
      : directory(TestScratch("quantized")) {
    const auto plain = TestScratch("plain");
    Json config = SyntheticConfig(2, 64, 96, 4, 2, 16, 50);
    WriteSyntheticModel(plain, config);
    CopyWeights(plain, directory, [&](TensorMap& tensors) {
      tensors.erase(kQ + std::string("weight"));
      if (quantization["quant_method"] == "fp8") {
        tensors[kQ + std::string("weight")] = Zeros(DType::kF8E4M3, {64, 64});
        tensors[kQ + std::string("weight_scale")] = Zeros(DType::kF32, {});
      } else {
        tensors[kQ + std::string("qweight")] = Zeros(DType::kI32, {8, 64});
        tensors[kQ + std::string("qzeros")] = Zeros(DType::kI32, {1, 8});
        tensors[kQ + std::string("scales")] = Zeros(DType::kF16, {1, 64});
      }
      change(tensors);
    });
    config["quantization_config"] = quantization;
    WriteFileAtomically(directory / "config.json", config.dump());
    spec = ReadModelSpec(directory);
    checkpoint = Checkpoint::Open(directory);
  }

  std::string TensorProblem() const {
    return ErrorOf<InputError>([&] { CheckTensors(spec, checkpoint); });
  }

  std::filesystem::path directory;
  ModelSpec spec;
  Checkpoint checkpoint;
};

const Json kFp8 = {{"quant_method", "fp8"}};
const Json kGptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}};

TEST(CheckTensors, QuantizedWeightsFitByTheirParts) {
  const QuantizedWeights fp8(kFp8, [](TensorMap&) {}), gptq(kGptq, [](TensorMap&) {});
  EXPECT_EQ(fp8.TensorProblem(), "");
  EXPECT_EQ(gptq.TensorProblem(), "");
  EXPECT_EQ(StoredDType(fp8.spec, fp8.checkpoint), DType::kBF16);
  EXPECT_EQ(DescribeStorage(fp8.spec, fp8.checkpoint), "BF16; fp8");
  EXPECT_EQ(DescribeStorage(gptq.spec, gptq.checkpoint), "BF16; gptq 4-bit");
}

TEST(CheckTensors, ScalesOfActivationsAreSkippedAndOthersAreNot) {
  const auto problem = [](const std::string& name) {
    return QuantizedWeights(kFp8,
                            [&](TensorMap& tensors) { tensors[name] = Zeros(DType::kF32, {1}); })
        .TensorProblem();
  };
  EXPECT_EQ(problem(kQ + std::string("input_scale")), "");
  EXPECT_EQ(problem("model.layers.1.self_attn.k_scale"), "");
  EXPECT_TRUE(Says(problem(kQ + std::string("weight_zero_point")), "weight_zero_point"));
  EXPECT_TRUE(Says(problem("model.layers.0.self_attn.k_proj.weight_scale"), "k_proj.weight_scale"));
  EXPECT_TRUE(Says(problem(kQ + std::string("pre_quant_scale")), "pre_quant_scale"));
}

TEST(CheckTensors, QuantizedWeightsOfAnotherShapeAreNamed) {
  const std::string message = QuantizedWeights(kGptq, [](TensorMap& tensors) {
                                tensors[kQ + std::string("qweight")] = Zeros(DType::kI32, {16, 64});
                              }).TensorProblem();
  EXPECT_TRUE(Says(message, "q_proj.weight has shape [64, 128], expected [64, 64]"));
}

TEST(CheckTensors, ABiasNobodyAskedForMustBeZero) {
  const auto problem = [](std::byte value) {
    return QuantizedWeights(kGptq,
                            [&](TensorMap& tensors) {
                              StoredBytes bias = Zeros(DType::kF16, {64});
                              bias.data[7] = value;
                              tensors[kQ + std::string("bias")] = bias;
                            })
        .TensorProblem();
  };
  EXPECT_EQ(problem(std::byte{0}), "");
  EXPECT_TRUE(Says(problem(std::byte{1}), "q_proj.bias"));
}

TEST(CheckTensors, AnEmbeddingMustBePlain) {
  const std::string message =
      QuantizedWeights(kFp8, [](TensorMap& tensors) {
        tensors["model.embed_tokens.weight"] = Zeros(DType::kF8E4M3, {50, 64});
        tensors["model.embed_tokens.weight_scale"] = Zeros(DType::kF32, {});
      }).TensorProblem();
  EXPECT_TRUE(Says(message, "embed_tokens.weight is stored as fp8"));
}

}  // namespace
}  // namespace oscar
