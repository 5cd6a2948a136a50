// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares every family of tests/data/families with transformers 5, in both spellings of its
// configuration. A wrong field (family_mutations.h) must change the values or be refused; otherwise
// nothing reads that field.
#include "capture/model/families/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "linalg/base/error.h"
#include "tests/capture/model/family_mutations.h"
#include "tests/capture/model/golden.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Folders() {
  std::vector<fs::path> families;
  for (const auto& entry : fs::directory_iterator(TestData("families"))) {
    if (entry.is_directory()) families.push_back(entry.path());
  }
  std::ranges::sort(families);
  return families;
}

TEST(Families, AgreeWithTransformersInBothSpellings) {
  size_t runs = 0;
  for (const fs::path& family : Folders()) {
    for (const std::string config : {"config.json", "config.legacy.json"}) {
      for (const std::string golden : {"golden.safetensors", "golden_short.safetensors"}) {
        if (!exists(family / config) || !exists(family / golden)) continue;
        const std::string name = family.filename().string() + " " + config + " " + golden;
        try {
          const GoldenErrors errors =
              CompareWithGolden(family, {config, golden, at::kCPU, at::kFloat, {}, nullptr});
          EXPECT_GE(errors.of.size(), 4u + 1) << name;
          EXPECT_LT(errors.worst, 2e-5) << name << " " << errors.worst_name;
          std::cout << "[   f32    ] " << name << ": worst " << errors.worst << " ("
                    << errors.worst_name << ")\n";
          ++runs;
        } catch (const InputError& error) {
          ADD_FAILURE() << name << ": " << error.what();
        }
      }
    }
  }
  EXPECT_GE(runs, 40u);
}

TEST(Families, ChunksOfTokensDoNotChangeValues) {
  for (const fs::path& family : Folders()) {
    GoldenRun run;
    run.options.token_chunk = 7;
    run.options.query_chunk = 5;
    run.options.whole_attention = 1;
    run.options.expert_bytes = 1;  // one expert at a time
    run.copies = 2;
    const GoldenErrors errors = CompareWithGolden(family, run);
    EXPECT_LT(errors.worst, 2e-5) << family << " " << errors.worst_name;
  }
}

TEST(Families, AWrongFieldIsSeenOrRefused) {
  for (const auto& [name, mutations] : Mutations().items()) {
    const fs::path family = TestData("families/" + name);
    for (const Json& mutation : mutations) {
      Json config = ReadJsonFile((family / "config.json").string());
      const Json::json_pointer field(mutation.at(0).get<std::string>());
      ASSERT_FALSE(config.contains(field) && config[field] == mutation.at(1)) << name << mutation;
      config[field] = mutation.at(1);
      config.erase("architectures");  // it would refuse a changed model_type
      GoldenRun run;
      run.config_json = &config;
      double worst = 0;
      try {
        worst = CompareWithGolden(family, run).worst;
      } catch (const InputError&) {
        continue;
      }
      // The bound is far above the tolerance of the golden test. NaN counts as different.
      EXPECT_FALSE(worst < 1e-3) << name << " " << mutation << ": worst " << worst;
    }
  }
}

TEST(Families, EveryFamilyHasAModelHere) {
  std::set<std::string> here;
  for (const fs::path& folder : Folders()) {
    const Json config = ReadJsonFile((folder / "config.json").string());
    for (const char* field :
         {"/model_type", "/text_config/model_type", "/thinker_config/text_config/model_type"})
      here.insert(config.value(Json::json_pointer(field), ""));
  }
  std::set<ModelSpec (*)(ConfigReader&)> read;
  for (const Family& family : oscar::Families()) {
    if (here.contains(std::string(family.model_type))) read.insert(family.read);
  }
  for (const Family& family : oscar::Families())
    EXPECT_TRUE(read.contains(family.read)) << family.model_type;
}

TEST(Families, RefusalsHaveReasons) {
  EXPECT_TRUE(std::ranges::is_sorted(Refusals(), {}, &Refusal::model_type));
  for (const Refusal& refusal : Refusals()) {
    const std::string text = ErrorOf<InputError>([&] {
      ReadModelSpec(Json{{"model_type", refusal.model_type}});
    });
    EXPECT_TRUE(Says(text, refusal.reason));
  }
}

TEST(Families, EveryFamilyOfTheFolderHasAMutation) {
  for (const fs::path& family : Folders())
    EXPECT_TRUE(Mutations().contains(family.filename().string())) << family;
}

// Tests the text part of a multimodal release. Its config is under text_config, and its tensors
// have one of two prefixes. Tensors of other modalities are skipped by name.
TEST(Families, WrappersRunTheirTextPart) {
  const std::tuple<const char*, const char*, const char*> wrappers[] = {
      {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
      {"mistral3", "Mistral3ForConditionalGeneration", "ministral3"},
      {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text-ple"},
      {"internvl", "InternVLForConditionalGeneration", "qwen2"},
      {"llama4", "Llama4ForConditionalGeneration", "llama4_text"},
      {"mistral3", "Mistral3ForConditionalGeneration", "mistral4"}};
  for (const auto& [model_type, architecture, text] : wrappers) {
    const fs::path family = TestData(std::string("families/") + text);
    for (const std::string prefix : {"model.language_model.", "language_model.model."}) {
      const fs::path directory = TestScratch("wrapper");
      CopyWeights(family, directory, [&](TensorMap& tensors) {
        TensorMap renamed;
        for (auto& [name, tensor] : tensors) {
          const bool head = name == "lm_head.weight";
          const std::string outer = prefix == "language_model.model." ? "language_model." : "";
          renamed[head ? outer + name : prefix + name.substr(6)] = tensor;
        }
        renamed["vision_tower.patch_embedding.weight"] = renamed.begin()->second;
        renamed["model.vision_tower.patch_embedding.weight"] = renamed.begin()->second;
        tensors = renamed;
      });
      copy_file(family / "golden.safetensors", directory / "golden.safetensors");
      for (const char* spelling : {"config.json", "config.legacy.json"}) {
        Json inner = ReadJsonFile((family / spelling).string());
        inner.erase("architectures");
        const Json config = {{"architectures", {architecture}},
                             {"model_type", model_type},
                             {"text_config", inner},
                             {"vision_config", {{"hidden_size", 8}, {"model_type", "siglip"}}},
                             {"image_token_index", 10},
                             {"mm_tokens_per_image", 256}};
        GoldenRun run;
        run.config_json = &config;
        EXPECT_LT(CompareWithGolden(directory, run).worst, 2e-5) << model_type << " " << prefix;
        Json wrong = config;
        wrong["mystery_norm"] = 1;
        run.config_json = &wrong;
        EXPECT_THROW(CompareWithGolden(directory, run), InputError);
      }
    }
  }
}

// A thinker may be a model of its own, with or without "thinker." in its tensor names.
TEST(Families, AThinkerRunsAlone) {
  for (const char* name : {"qwen2_5_omni", "qwen3_omni_moe"}) {
    const fs::path model = TestData(std::string("families/") + name);
    const fs::path alone = TestScratch("thinker");
    CopyWeights(model, alone, [](TensorMap& tensors) {
      TensorMap renamed;
      for (auto& [tensor, value] : tensors) renamed[tensor.substr(8)] = value;  // drops "thinker."
      tensors = renamed;
    });
    copy_file(model / "golden.safetensors", alone / "golden.safetensors");
    for (const char* spelling : {"config.json", "config.legacy.json"}) {
      Json config = ReadJsonFile((model / spelling).string())["thinker_config"];
      config["architectures"] = {std::string(name) == "qwen2_5_omni"
                                     ? "Qwen2_5OmniThinkerForConditionalGeneration"
                                     : "Qwen3OmniMoeThinkerForConditionalGeneration"};
      GoldenRun run;
      run.config_json = &config;
      EXPECT_LT(CompareWithGolden(alone, run).worst, 2e-5) << name << " " << spelling;
      EXPECT_LT(CompareWithGolden(model, run).worst, 2e-5) << name << " " << spelling;
    }
  }
}

// Qwen2-VL and Qwen2.5-VL have the text fields beside vision_config; later releases have them in
// text_config.
TEST(Families, FieldsOfTheTextPartMayStandOutside) {
  const fs::path model = TestData("families/qwen2_5_vl");
  for (const char* spelling : {"config.json", "config.legacy.json"}) {
    Json config = ReadJsonFile((model / spelling).string());
    Json text = config["text_config"];
    config.erase("text_config");
    text.update(config);  // takes the wrapper's model_type
    GoldenRun run;
    run.config_json = &text;
    EXPECT_LT(CompareWithGolden(model, run).worst, 2e-5) << spelling;
    text["mystery_norm"] = 1;
    EXPECT_THROW(CompareWithGolden(model, run), InputError);
  }
}

}  // namespace
}  // namespace oscar
