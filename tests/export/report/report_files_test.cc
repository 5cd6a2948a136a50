// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests a report's export to the formats of other tools.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "export/report/chart_files.h"
#include "export/report/llama_perplexity.h"
#include "export/report/lm_eval_results.h"
#include "export/report/report_page.h"
#include "tests/export/report/sample_report.h"

namespace oscar {
namespace {

const Json& ArmCalled(const Json& report, const std::string& name) {
  for (const Json& arm : report.at("validation").at("arms"))
    if (arm.at("name") == name) return arm;
  throw std::logic_error("no arm " + name);
}
const Json& HeadlineOf(const Json& report) {
  return ArmCalled(report, report.at("validation").at("headline_arm"));
}

std::set<std::string> MembersOf(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

size_t NumberIn(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++count;
  return count;
}

// Expects the members of EvalResults and _EvalConfig (lm_eval/result_schema.py 0.4.13), except
// samples, groups and tokenizer. lm-eval also omits those when there are none.
TEST(LmEvalResults, HaveTheMembersThatLmEvalWrites) {
  const Json report = SampleReport();
  const Json file = LmEvalResults(report, HeadlineOf(report), 1.5);
  EXPECT_EQ(MembersOf(file), (std::set<std::string>{"results",
                                                    "group_subtasks",
                                                    "configs",
                                                    "versions",
                                                    "n-shot",
                                                    "higher_is_better",
                                                    "n-samples",
                                                    "config",
                                                    "git_hash",
                                                    "date",
                                                    "pretty_env_info",
                                                    "transformers_version",
                                                    "lm_eval_version",
                                                    "upper_git_hash",
                                                    "task_hashes",
                                                    "model_source",
                                                    "model_name",
                                                    "model_name_sanitized",
                                                    "system_instruction",
                                                    "system_instruction_sha",
                                                    "fewshot_as_multiturn",
                                                    "chat_template",
                                                    "chat_template_sha",
                                                    "total_evaluation_time_seconds"}));
  for (const char* key :
       {"model", "model_args", "batch_size", "batch_sizes", "device", "use_cache", "limit",
        "bootstrap_iters", "gen_kwargs", "random_seed", "numpy_seed", "torch_seed", "fewshot_seed"})
    EXPECT_TRUE(file["config"].contains(key)) << key;
  for (const char* by_task : {"results", "group_subtasks", "configs", "versions", "n-shot",
                              "higher_is_better", "n-samples"})
    EXPECT_EQ(MembersOf(file[by_task]), (std::set<std::string>{"oscar_text"})) << by_task;
  EXPECT_EQ(file["date"], 1.5);
  EXPECT_EQ(file["git_hash"], "94daeac");
  EXPECT_EQ(file["config"]["model_args"]["pretrained"], "example/proof-qwen3");
  EXPECT_EQ(file["model_name_sanitized"], "example__proof-qwen3 oscar_per_head+clip+windows");
  EXPECT_EQ(file["n-samples"]["oscar_text"], Json({{"original", 24}, {"effective", 24}}));
}

TEST(LmEvalResults, PerplexitiesAreOfTheirUnits) {
  Json report = SampleReport();
  Json& data = report["validation"]["data"];
  Json& text = report["validation"]["arms"][5]["text"];
  text["perplexity"] = 8.0;
  text["perplexity_interval"] = {4.0, 16.0};
  text["scored_tokens"] = 100;
  text["top1_agreement"] = 0.8;
  data["scored_words"] = 50;
  data["scored_bytes"] = 300;
  const Json results = LmEvalResults(report, HeadlineOf(report), 0)["results"]["oscar_text"];
  constexpr double kHalf95 = 1.959964;
  EXPECT_EQ(results["token_perplexity,none"], 8.0);
  EXPECT_NEAR(results["token_perplexity_stderr,none"], 12 / (2 * kHalf95), 1e-12);
  EXPECT_NEAR(results["word_perplexity,none"], 64, 1e-9);  // two tokens per word
  EXPECT_NEAR(results["word_perplexity_stderr,none"], (256 - 16) / (2 * kHalf95), 1e-9);
  EXPECT_NEAR(results["byte_perplexity,none"], 2, 1e-12);  // three bytes per token
  EXPECT_NEAR(results["bits_per_byte,none"], 1, 1e-12);
  EXPECT_NEAR(results["top1_agreement_stderr,none"], std::sqrt(0.8 * 0.2 / 99), 1e-12);
  EXPECT_EQ(results["token_kl,none"], text["token_kl"]["mean"]);
  for (const auto& [key, value] : results.items())
    EXPECT_TRUE(key == "name" || key == "alias" || key == "sample_len" || key.ends_with(",none"))
        << key;
  data.erase("scored_words");
  text.erase("perplexity_interval");
  const Json without = LmEvalResults(report, HeadlineOf(report), 0)["results"]["oscar_text"];
  EXPECT_FALSE(without.contains("word_perplexity,none"));
  EXPECT_EQ(without["byte_perplexity_stderr,none"], "N/A");
}

TEST(LmEvalResults, EveryTextIsATask) {
  const Json report = SampleReport({.every_member = true});
  const Json file = LmEvalResults(report, HeadlineOf(report), 0);
  EXPECT_EQ(MembersOf(file["results"]), (std::set<std::string>{"oscar_own_words", "oscar_text"}));
}

TEST(LlamaPerplexity, OfAnOlderReportHasTheLinesThatItsNumbersGive) {
  const Json report = SampleReport();
  const std::string block = LlamaPerplexityText(report, HeadlineOf(report), "text");
  EXPECT_NE(block.find("Mean PPL(Q)                   :   2.471500\n"), block.npos) << block;
  EXPECT_NE(block.find("Median  KLD:"), block.npos);
  EXPECT_NE(block.find("Same top p: "), block.npos);
  for (const char* missing : {"Cor(", "95.0%   KLD", "RMS", "Minimum"})
    EXPECT_EQ(block.find(missing), block.npos) << missing;
}

TEST(ChartFiles, AreThoseOfThePageAndStandAlone) {
  const Json report = SampleReport({.every_member = true});
  const std::vector<ChartFile> files = ChartFiles(report);
  EXPECT_EQ(files.size(), NumberIn(ReportPage(report), "<svg "));
  std::set<std::string> names;
  for (const ChartFile& file : files) {
    names.insert(file.name);
    EXPECT_TRUE(file.svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""));
    EXPECT_EQ(NumberIn(file.svg, "<svg "), 1U);
    EXPECT_EQ(file.svg.find("var("), file.svg.npos) << file.name;
    for (const std::string tag : {"text", "title", "style", "desc", "g"}) {
      const size_t open = NumberIn(file.svg, "<" + tag + ">") + NumberIn(file.svg, "<" + tag + " ");
      EXPECT_EQ(open, NumberIn(file.svg, "</" + tag + ">")) << file.name << ' ' << tag;
    }
    // The colour of the first series must precede the rule that makes some lines strong.
    EXPECT_LT(file.svg.find("\n.s0 polyline, polyline.s0{fill:none;stroke:#0a5fb4;"),
              file.svg.find("\n.strong polyline{"))
        << file.name;
  }
  EXPECT_EQ(names.size(), files.size());
}

TEST(ChartFiles, RunNothingOfAHostileReport) {
  for (const ChartFile& file : ChartFiles(SampleReport({.hostile = true})))
    EXPECT_EQ(file.svg.find("<script"), file.svg.npos) << file.name;
}

}  // namespace
}  // namespace oscar
