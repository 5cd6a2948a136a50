// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the loss which a calibration measures after its last layer is that of the whole model.
#include "calib/observe/text_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calib/run/calibrate.h"
#include "capture/checkpoint/checkpoint.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

class Nobody : public LayerObserver {
 public:
  void OnAttention(const AttentionView& /*view*/) override {}
};

double WholeModelLoss(const Checkpoint& checkpoint, const ModelSpec& spec,
                      const std::vector<std::vector<int32_t>>& sequences) {
  ModelSource model(checkpoint, spec, sequences, at::kCPU, at::kFloat);
  Nobody observer;
  model.Run(0, observer, [](size_t) { return true; });
  double sum = 0;
  int64_t row = 0, count = 0;
  for (const auto& sequence : sequences) {
    const auto length = std::ssize(sequence);
    const at::Tensor logs =
        model.loop().Logits(model.hidden().narrow(0, row, length)).to(at::kDouble).log_softmax(-1);
    for (int64_t i = 0; i + 1 < length; ++i, ++count)
      sum -= logs[i][sequence[static_cast<size_t>(i + 1)]].item<double>();
    row += length;
  }
  return sum / static_cast<double>(count);
}

TEST(TextLoss, IsThatOfTheWholeModel) {
  for (const char* name : {"tiny-qwen3", "arch/llama", "families/gemma2", "families/qwen3_moe",
                           "families/deepseek_v3", "families/cohere", "families/qwen3_next"}) {
    const std::filesystem::path directory = TestData(name);
    const ModelSpec spec = ReadModelSpec(directory);
    const Checkpoint checkpoint = Checkpoint::Open(directory);
    std::vector<std::vector<int32_t>> sequences(3);
    for (size_t s = 0; s < sequences.size(); ++s) {
      for (size_t i = 0; i < 9 + 4 * s; ++i)
        sequences[s].push_back(static_cast<int32_t>((31 * i + 7 * s + i * i) % 31));
    }
    ModelSource model(checkpoint, spec, sequences, at::kCPU, at::kFloat, CalibrationLoopOptions());
    EXPECT_FALSE(MeasureTextLoss(model, TextRowsOf(model))) << name;  // no layer has run
    Nobody observer;
    model.Run(0, observer, [](size_t) { return true; });
    const auto loss = MeasureTextLoss(model, TextRowsOf(model));
    ASSERT_TRUE(loss) << name;
    EXPECT_EQ(loss->tokens, 8 + 12 + 16) << name;
    EXPECT_NEAR(loss->mean, WholeModelLoss(checkpoint, spec, sequences), 1e-5) << name;
  }
}

TEST(TextLoss, NearAGuessIsImplausible) {
  const auto implausible = [](double mean) {
    return TextLoss{.mean = mean, .tokens = 100, .vocab_size = 151936}.implausible();
  };
  EXPECT_FALSE(implausible(2.5));
  EXPECT_FALSE(implausible(7.0));  // as with word frequencies only
  EXPECT_TRUE(implausible(11.9));
  EXPECT_TRUE(implausible(NAN));
}

}  // namespace
}  // namespace oscar
