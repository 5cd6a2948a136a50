// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate doctor on complete, incomplete and broken model directories. It must list
// every reason at once, or print the next command.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

ProgramExit Doctor(const fs::path& model, ProgramStrings more = {}) {
  more.insert(more.begin(), {"doctor", model.string(), "--device", "cpu"});
  return RunProgram(OSCAR_CALIBRATE, more);
}

// Copies the bundled model and changes its config.json.
fs::path CopyOfTiny(const std::string& name, const std::function<void(Json& config)>& change) {
  const fs::path directory = TestScratch(name);
  fs::copy(TestData("tiny-qwen3"), directory,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  Json config = ReadJsonFile((directory / "config.json").string());
  change(config);
  std::ofstream(directory / "config.json") << config.dump();
  return directory;
}

void EditJson(const fs::path& path, const std::function<void(Json& json)>& change) {
  Json json = ReadJsonFile(path.string());
  change(json);
  std::ofstream(path) << json.dump();
}

TEST(Doctor, SaysWhatTheBundledModelIsAndWhatComesNext) {
  const fs::path model = TestData("tiny-qwen3");
  const ProgramExit result = Doctor(model, {"--tokens", "4000", "-o", "never-made"});
  EXPECT_TRUE(Exits(result, 0));
  for (const char* text : {"qwen3, 4 layers (4 with a KV cache)", "KV heads, head_dim",
                           "default theta=", "queries and keys are normalized", "BF16", "BPE, ",
                           " documents\n", "weights to read", "disk, artifact", "--to sglang"})
    EXPECT_TRUE(Says(result.out, text));
  EXPECT_FALSE(Says(result.out, "cannot be calibrated"));
  // The next command repeats the options.
  const std::string next =
      "oscar-calibrate " + model.string() + " --device cpu --tokens 4000 -o never-made\n";
  EXPECT_TRUE(Says(result.out, next));
  EXPECT_FALSE(fs::exists("never-made"));
}

TEST(Doctor, ListsEveryReasonOfABrokenDirectory) {
  const fs::path broken = CopyOfTiny("doctor_broken", [](Json& config) {
    config["hidden_act"] = "relu6";
    config["unheard_norm"] = 3;
    config["also_unheard_norm"] = true;
    config["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2.0}};
    config.erase("rope_parameters");
    config["rope_theta"] = 10000.0;
    config["num_hidden_layers"] = 5;  // one more than the file has tensors for
    config["quantization_config"] = {{"quant_method", "bitsandbytes"}};
  });
  EditJson(broken / "tokenizer.json", [](Json& json) {
    json["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
    json["decoder"] = {{"type", "CTC"}};
  });
  EditJson(broken / "tokenizer_config.json",
           [](Json& json) { json["chat_template"] = "{% for m in messages %}{{ m }}"; });
  const ProgramExit result = Doctor(broken);
  EXPECT_TRUE(Exits(result, 3));
  for (const char* reason : {"hidden_act", "unheard_norm is an unknown field", "also_unheard_norm",
                             "rope_scaling: rope_type", "bitsandbytes",
                             "model.layers.4.self_attn.q_proj.weight is missing", "UnicodeScripts",
                             "\"CTC\"", "chat_template"})
    EXPECT_TRUE(Says(result.out, reason));
  // A refused rotary embedding is one reason; its factor is not reported as another.
  EXPECT_FALSE(Says(result.out, "factor is"));
  EXPECT_FALSE(Says(result.out, "Next"));

  const ProgramExit json = Doctor(broken, {"--json"});
  EXPECT_TRUE(Exits(json, 3));
  const Json report = ParseStrictJson(json.out, "doctor --json");
  EXPECT_FALSE(report.at("supported").get<bool>());
  EXPECT_GE(report.at("reasons").size(), 10u) << json.out;
}

// With 1,496 ids for a model of 8,256, the tokenizer must belong to another model.
TEST(Doctor, RefusesATokenizerOfAnotherModel) {
  const fs::path other = CopyOfTiny("doctor_other_tokenizer", [](Json&) {});
  fs::copy_file(TestData("tokenizers/qwen3") / "tokenizer.json", other / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  const ProgramExit result = Doctor(other);
  EXPECT_TRUE(Exits(result, 3));
  EXPECT_TRUE(Says(result.out, "the tokenizer has 1496 ids and the model 8256"));
  EXPECT_TRUE(Says(result.out, "--allow-small-vocabulary"));
  EXPECT_EQ(Doctor(other, {"--allow-small-vocabulary"}).code, 0);

  const ProgramStrings plan = {other.string(), "--device", "cpu", "--dry-run"};
  EXPECT_TRUE(Exits(RunProgram(OSCAR_CALIBRATE, plan), 3, "the tokenizer has 1496 ids"));
}

// Returns a copy of the bundled model whose final norm is stored as zeros. Its configuration has an
// unknown field, which could mean that the model has no final norm.
fs::path TinyWithoutFinalNorm() {
  const fs::path model = CopyOfTiny("unknown_norm", [](Json& config) { config["head_mode"] = 1; });
  std::fstream file(model / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string header(size, ' ');
  file.read(header.data(), static_cast<std::streamsize>(size));
  const Json place = Json::parse(header).at("model.norm.weight").at("data_offsets");
  const auto begin = place[0].get<uint64_t>(), end = place[1].get<uint64_t>();
  file.seekp(static_cast<std::streamoff>(sizeof size + size + begin));
  file.write(std::string(end - begin, '\0').data(), static_cast<std::streamsize>(end - begin));
  return model;
}

TEST(Calibrate, AFieldThatNobodyKnowsPassesIfTheLossProvesTheForwardPass) {
  const fs::path model =
      CopyOfTiny("unknown_passes", [](Json& config) { config["head_mode"] = 1; });
  const fs::path out = TestScratch("unknown_passes_out") / "artifact";
  const ProgramExit result =
      RunProgram(OSCAR_CALIBRATE, {model.string(), "--device", "cpu", "--no-auto", "--tokens",
                                   "2000", "--min-tokens", "1", "-o", out.string()});
  EXPECT_TRUE(Exits(result, 0, "the field 'head_mode' is unknown"));
  EXPECT_TRUE(Says(result.err, "shows that the unknown fields"));
  const Json manifest = ReadJsonFile((out / "manifest.json").string());
  EXPECT_EQ(manifest.at("model").at("unknown_config"), Json({"head_mode"}));
}

TEST(Calibrate, StopsAtTheLossBeforeAnythingIsPublished) {
  const fs::path model = TinyWithoutFinalNorm();
  const fs::path out = TestScratch("unknown_stops") / "artifact";
  const auto run = [&](ProgramStrings more) {
    more.insert(more.begin(), {model.string(), "--device", "cpu", "--no-auto", "--tokens", "2000",
                               "--min-tokens", "1", "-o", out.string()});
    return RunProgram(OSCAR_CALIBRATE, more);
  };
  for (int i = 0; i < 2; ++i) {  // the second run takes all layers from the job
    const ProgramExit stopped = run({});
    EXPECT_TRUE(Exits(stopped, 3));
    for (const char* text : {"'head_mode' are the likely cause", "--unknown-config ignore"})
      EXPECT_TRUE(Says(stopped.err, text));
    EXPECT_FALSE(fs::exists(out));
    EXPECT_TRUE(fs::exists(out.string() + ".job"));
  }
  EXPECT_TRUE(Exits(run({"--unknown-config", "ignore"}), 0));
  EXPECT_TRUE(fs::exists(out / "manifest.json"));
}

// Each line of verdicts.tsv is a name, a tab, and "accepted" or a part of the expected reason.
TEST(Doctor, VerdictsOnReleasedConfigurations) {
  OSCAR_PACK_OR_SKIP(path, "released_configs");
  std::ifstream table(TestData("configs") / "verdicts.tsv");
  size_t checked = 0;
  for (std::string line; std::getline(table, line);) {
    const size_t tab = line.find('\t');
    const std::string name = line.substr(0, tab), verdict = line.substr(tab + 1);
    const ProgramExit result = Doctor(path / name);
    EXPECT_EQ(result.code, verdict == "accepted" ? 0 : 3) << name << "\n" << result.out;
    if (verdict != "accepted") {
      EXPECT_TRUE(Says(result.out, verdict));
    }
    ++checked;
  }
  EXPECT_EQ(checked, 64u);
}

// A truncated text is reported with the limit that cut it and the flag that would use the rest.
TEST(Calibrate, SaysWhatOfATextIsUnusedAndWhatCutIt) {
  struct Cut {
    const char *model, *limit;
    int ids;
    const char* unused;
  };
  const Cut cuts[] = {
      {"tiny-qwen3", "8192 positions (max_position_embeddings)", 9000, "808 of 9000"},
      {"families/glm_moe_dsa", "40 positions (index_topk; ", 90, "50 of 90"},
      {"families/llama4_text", "32 positions (attention_chunk_size; ", 90, "58 of 90"},
      {"families/minimax_m3", "32 positions (index_topk_blocks; ", 90, "58 of 90"},
      {"families/phimoe", "(original_max_position_embeddings; ", 90, "of 90"}};
  const fs::path data = TestScratch("unused") / "data.jsonl";
  for (const Cut& cut : cuts) {
    Json ids = Json::array();
    for (int i = 0; i < cut.ids; ++i) ids.push_back(i * 7 % 30);
    std::ofstream(data, std::ios::trunc) << Json{{"input_ids", ids}} << "\n";
    const ProgramExit result = RunProgram(
        OSCAR_CALIBRATE, {TestData(cut.model).string(), "--device", "cpu", "--data", data.string(),
                          "--min-tokens", "1", "--dry-run", "--whole-documents"});
    EXPECT_TRUE(Exits(result, 0));
    for (const std::string text : {cut.limit, cut.unused, "are not used", "--pack joins documents"})
      EXPECT_TRUE(Says(result.err, text));
  }
}

TEST(Doctor, KnowsWhatIsMissingOfAModel) {
  const fs::path fields = CopyOfTiny("doctor_fields", [](Json& config) {
    for (const char* key : {"hidden_size", "num_attention_heads", "intermediate_size"})
      config.erase(key);
    config["unheard_norm"] = 3;
  });
  const ProgramExit result = Doctor(fields);
  EXPECT_TRUE(Exits(result, 3));
  for (const char* key : {"hidden_size is missing", "num_attention_heads is missing",
                          "intermediate_size is missing", "unheard_norm is an unknown field"})
    EXPECT_TRUE(Says(result.out, key));

  const fs::path shards = CopyOfTiny("doctor_shards", [](Json&) {});
  fs::remove(shards / "model.safetensors");
  const Json map = {{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}};
  std::ofstream(shards / "model.safetensors.index.json") << Json{{"weight_map", map}}.dump();
  fs::create_symlink("nowhere", shards / "tokenizer.model");
  const ProgramExit lost = Doctor(shards);
  EXPECT_TRUE(Exits(lost, 3));
  for (const char* text :
       {"model-1.safetensors", "model-2.safetensors", "tokenizer.model: links to a file"})
    EXPECT_TRUE(Says(lost.out, text));

  const fs::path no_text = CopyOfTiny("doctor_no_text", [](Json&) {});
  fs::remove(no_text / "tokenizer.json");
  const ProgramExit ids = Doctor(no_text);
  EXPECT_TRUE(Exits(ids, 0));
  EXPECT_TRUE(Says(ids.out, "- tokenizer.json"));
  EXPECT_TRUE(Says(ids.out, "--data INPUT_IDS.jsonl"));

  EXPECT_EQ(Doctor("no/such directory").code, 3);
}

TEST(Doctor, AnUnknownFieldIsOneOptionAway) {
  const fs::path model =
      CopyOfTiny("doctor_unknown", [](Json& config) { config["unheard_of"] = 3; });
  const ProgramExit passes = Doctor(model);
  EXPECT_TRUE(Exits(passes, 0));
  EXPECT_TRUE(Says(passes.out, "unheard_of: --unknown-config decides"));
  const ProgramExit refused = Doctor(model, {"--unknown-config", "refuse"});
  EXPECT_TRUE(Exits(refused, 3));
  EXPECT_TRUE(Says(refused.out, "--unknown-config ignore\n"));
  EXPECT_EQ(Doctor(model, {"--unknown-config", "ignore"}).code, 0);
  const ProgramExit old = Doctor(model, {"--allow-unknown-config"});
  EXPECT_TRUE(Exits(old, 2));
  EXPECT_TRUE(Says(old.all(), "--allow-unknown-config was removed; use --unknown-config ignore"));
}

// After adding a model family, a weight format or a tokenizer component, run:
//   oscar-calibrate doctor --tables --into configs/docs/support.md
TEST(Doctor, TheReadmeHasTheTablesOfTheCode) {
  const ProgramExit tables = RunProgram(OSCAR_CALIBRATE, {"doctor", "--tables"});
  ASSERT_TRUE(Exits(tables, 0));
  for (const char* name : {"qwen3_next", "deepseek_v3", "compressed-tensors", "Metaspace", "NFKC"})
    EXPECT_TRUE(Says(tables.out, name));
  const std::string readme = ReadText(OSCAR_SUPPORT);
  const std::string begin = "<!-- oscar-calibrate doctor --tables: begin -->\n",
                    end = "<!-- oscar-calibrate doctor --tables: end -->\n";
  EXPECT_TRUE(Says(readme, begin + tables.out + end))
      << "run: oscar-calibrate doctor --tables --into configs/docs/support.md";

  const fs::path page = TestScratch("doctor_tables") / "page.md";
  std::ofstream(page) << "before\n" << begin << "old\n" << end << "after\n";
  EXPECT_EQ(RunProgram(OSCAR_CALIBRATE, {"doctor", "--tables", "--into", page.string()}).code, 0);
  EXPECT_EQ(ReadText(page), "before\n" + begin + tables.out + end + "after\n");
  std::ofstream(page) << "no marks\n";
  EXPECT_EQ(RunProgram(OSCAR_CALIBRATE, {"doctor", "--tables", "--into", page.string()}).code, 3);
}

}  // namespace
}  // namespace oscar
