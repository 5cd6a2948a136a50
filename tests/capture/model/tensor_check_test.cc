// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "capture/model/model_spec.h"
#include "linalg/error.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// The message of CheckTensors on a changed copy of a pack, or "" if it fits.
std::string Problem(const char* model, const std::function<void(TensorMap&)>& change) {
  const auto directory = TestScratch("tensors");
  CopyWeights(TestData(model), directory, change);
  const ModelSpec spec = ReadModelSpec(TestData(model));
  try {
    CheckTensors(spec, Checkpoint::Open(directory));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void ExpectMentions(const std::string& message, std::string_view text) {
  EXPECT_NE(message.find(text), std::string::npos) << "'" << text << "' is not in: " << message;
}

TEST(CheckTensors, CompleteModelsFit) {
  EXPECT_EQ(Problem("arch/llama", [](TensorMap&) {}), "");
  EXPECT_EQ(Problem("arch/qwen2-swa", [](TensorMap&) {}), "");
}

TEST(CheckTensors, NamesWhatIsMissing) {
  const std::string name = "model.layers.1.self_attn.k_proj.bias";
  ExpectMentions(Problem("arch/qwen2-swa", [&](TensorMap& tensors) { tensors.erase(name); }), name);
}

TEST(CheckTensors, NamesAWrongShape) {
  const std::string name = "model.layers.2.self_attn.v_proj.weight";
  const std::string message = Problem("arch/llama", [&](TensorMap& tensors) {
    tensors[name].shape = {32, 128};
  });
  ExpectMentions(message, name);
  ExpectMentions(message, "[32, 128]");
  ExpectMentions(message, "[64, 64]");
}

TEST(CheckTensors, NamesAWeightFormatThatIsNotImplemented) {
  const std::string message = Problem("arch/llama", [](TensorMap& tensors) {
    StoredBytes& weight = tensors["model.layers.0.mlp.up_proj.weight"];
    weight.dtype = DType::kF8E4M3;
    weight.data.resize(weight.data.size() / 2);
  });
  ExpectMentions(message, "F8_E4M3");
  ExpectMentions(message, "BF16, F16, F32");
}

TEST(CheckTensors, RefusesTensorsOfNoUse) {
  for (const char* name :
       {"model.layers.3.mlp.up_proj.weight", "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.self_attn.sinks", "model.layers.0.mlp.up_proj.weight_scale",
        "score.weight"}) {
    ExpectMentions(
        Problem("arch/llama",
                [&](TensorMap& tensors) { tensors[name] = tensors["model.norm.weight"]; }),
        name);
  }
}

TEST(CheckTensors, SkipsWhatTheFamilySkips) {
  const auto add = [](const char* name) {
    return [name](TensorMap& tensors) { tensors[name] = tensors["model.norm.weight"]; };
  };
  EXPECT_EQ(Problem("arch/llama", add("model.layers.0.self_attn.rotary_emb.inv_freq")), "");
  EXPECT_EQ(Problem("tiny-qwen3", add("lm_head.weight")), "");
}

TEST(CheckTensors, ManyProblemsAreCounted) {
  const std::string message = Problem("arch/llama", [](TensorMap& tensors) {
    std::erase_if(tensors, [](const auto& entry) {
      return entry.first.find("self_attn") != std::string::npos;
    });
  });
  ExpectMentions(message, "and 7 more");
}

TEST(CheckTensors, StoredDTypeIsThatOfMostBytes) {
  EXPECT_EQ(
      StoredDType(ReadModelSpec(TestData("arch/llama")), Checkpoint::Open(TestData("arch/llama"))),
      DType::kBF16);
}

}  // namespace
}  // namespace oscar
