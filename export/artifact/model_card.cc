// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of models and data come from users and files. In the front matter they are therefore JSON
// strings, which are also valid YAML.
#include "export/artifact/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tuple>

#include "calib/consumers.h"
#include "export/artifact/report.h"
#include "export/formats/loaders.h"
#include "export/measures/table.h"
#include "export/report/sensitive_sides.h"
#include "export/report/verdict.h"

namespace oscar {
namespace {

std::string MarkdownTable(const ReportTable& table) {
  std::string text = "|";
  for (const std::string& cell : table.header) text += " " + cell + " |";
  text += "\n|";
  for (size_t i = 0; i < table.header.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) text += " " + cell + " |";
    text += "\n";
  }
  return text;
}

// Makes inline code, so that Markdown does not interpret the text.
std::string Code(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '`') c = ' ';
  }
  return "`" + text + "`";
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '|' || c == '<' || c == '>' || c == '`') c = ' ';
  }
  return text;
}

// Returns the section on the validation, with a row for each configuration. The headline's row is
// bold.
std::string ValidationText(const Json& validation) {
  ReportTable table;
  table.header = {"configuration"};
  std::vector<Measure> columns;
  for (const char* name :
       {"kl", "e2e_kl", "token_kl", "perplexity", "ppl_ratio", "needle", "bits"}) {
    columns.push_back(MeasureNamed(name));
    table.header.emplace_back(columns.back().heading);
  }
  const std::string headline = validation.at("headline_arm");
  for (const Json& arm : validation.at("arms")) {
    const std::string name = OneLine(arm.at("name"));
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(arm.at("name") == headline ? "**" + name + "**" : name);
    for (const Measure& column : columns) {
      const std::string number = TextOf(column, arm);
      row.push_back(number.empty() ? "–" : number);
    }
  }
  std::string text = "\n## Validation\n\n";
  if (validation.contains("gate")) {
    const Json& gate = validation.at("gate");
    text += fmt::format("Gate {}: {}. ", Code(gate.at("text")),
                        gate.at("passed").get<bool>() ? "passed" : "failed");
  } else {
    text += "No gate was given. ";
  }
  const Verdict verdict = VerdictOf(validation);
  for (const std::string& sentence :
       {verdict.remedy, verdict.fit, verdict.domains, verdict.notice, verdict.caution})
    text += sentence.empty() ? "" : OneLine(sentence) + "\n";
  text += "\n";
  text += fmt::format(
      "All configurations (ways to store the cache), measured by oscar-validate on {}; the "
      "published one is in bold, and report.html has all details:\n\n",
      OneLine(validation.at("data").at("name")));
  return text + MarkdownTable(table);
}

// Returns the headline's numbers as the Hugging Face Hub expects them. YAML may contain JSON.
std::string FrontMatterMetrics(const Json& validation, const std::string& model) {
  Json metrics = Json::array();
  std::string types;
  for (const Json& arm : validation.at("arms")) {
    if (arm.at("name") != validation.at("headline_arm")) continue;
    for (const auto& [type, name, measure] :
         {std::tuple("kl_divergence", "attention-KL, nats", "kl"),
          std::tuple("perplexity", "perplexity", "perplexity"),
          std::tuple("accuracy", "needle recall", "needle")}) {
      const Json* value = FindAt(arm, MeasureNamed(measure).path);
      if (value == nullptr) continue;
      metrics.push_back({{"type", type}, {"name", name}, {"value", *value}});
      types += fmt::format("- {}\n", type);
    }
  }
  const Json result = {{"task", {{"type", "text-generation"}}},
                       {"dataset", {{"type", "text"}, {"name", validation.at("data").at("name")}}},
                       {"metrics", metrics}};
  const Json index = Json::array(
      {{{"name", "INT2 KV-cache rotations for " + model}, {"results", Json::array({result})}}});
  return fmt::format("metrics:\n{}model-index: {}\n", types, index.dump());
}

std::string BudgetsText(const Json& serving) {
  const ReportTable budgets = BudgetsTable(serving, "ARTIFACT");
  if (budgets.rows.empty()) return {};
  return "\nChoices for the runtime `any` at each number of bits stored per element, not counting "
         "windows:\n\n" +
         MarkdownTable(budgets);
}

// Returns the section that lists each runtime's choice and the command that exports it.
std::string ExportText(const Json& serving, bool latents) {
  const ReportTable runtimes = RuntimesTable(serving, "ARTIFACT");
  const std::string own = latents ? "sglang-oct" : "sglang";  // only sglang-oct caches latents
  if (runtimes.rows.empty()) {
    return fmt::format(
        "\nWrite the files that SGLang loads with `oscar-export ARTIFACT --to {} -o DIRECTORY`.\n",
        own);
  }
  std::string loaders;
  for (const ConsumerRules& rules : AllConsumers()) {
    if (rules.export_target.empty() || (latents && !rules.latents)) continue;
    loaders += fmt::format("- `--to {}`: {}\n", rules.export_target,
                           fmt::join(LoaderLines(LoaderOf(rules.export_target)), "; "));
  }
  return "\n## Choices for each runtime\n\nChosen layer by layer under the rules of each runtime. "
         "Attention-KL is in nats; it and the relative output error are measured at 2 bits on "
         "held-out rows that see a quantized key and were not used for choosing. The row with * is "
         "judged by the validation. A folded checkpoint is a copy of the model that computes the "
         "same (`oscar-export ARTIFACT --to folded-checkpoint --for RUNTIME --model MODEL -o "
         "FOLDED`).\n\n" +
         MarkdownTable(runtimes) + BudgetsText(serving) + "\nSoftware that loads the files:\n\n" +
         loaders +
         fmt::format(
             "\nOSCAR's own rotations, as published: `oscar-export ARTIFACT --to {} --rotations "
             "oscar -o DIRECTORY`.\n",
             own);
}

}  // namespace

std::string ModelCard(const Json& report) {
  const std::string model = report.at("model").value("id", std::string("unknown model"));
  const std::string data = report.at("data").value("name", std::string("unknown data"));
  const Json& serving = report.at("serving");
  std::string card = fmt::format(
      "---\nlibrary_name: oscar\nbase_model: {}\nbase_model_relation: quantized\ntags:\n- "
      "kv-cache\n- int2\n"
      "- oscar\n{}---\n\n",
      Json(model).dump(),
      report.contains("validation") ? FrontMatterMetrics(report.at("validation"), model) : "");
  card += fmt::format("# INT2 KV-cache rotations for {}\n\n", OneLine(model));
  card += fmt::format(
      "Rotations of keys and values (R = U H P, arXiv 2605.17757) fitted offline to the attention "
      "of this model on {}, both per KV head and shared by the heads of a layer. A token is a row "
      "vector: the cache stores k R_K and v R_V quantized to 2 bits; queries are rotated by the "
      "same R_K, and the attention output by the transpose of R_V. Value target: {}. Composition: "
      "{}.\n\n",
      OneLine(data), report.at("calibration").value("value_target", std::string("unknown")),
      report.at("calibration").value("composition", std::string("unknown")));
  const bool latents = !report.at("calibration").value("latent_layers", Json::array()).empty();
  if (latents) {
    card +=
        "The model has latent attention. For each token its cache holds one row, the latent, which "
        "is key and value at once and has one rotation and one clip ratio, and the part with "
        "position, which stays in 16 bits.\n\n";
  }
  card += fmt::format(
      "Recommended serving parameters: {}, {} sink and {} recent tokens in 16 bits.\n\n",
      ClipText(serving), serving.value("sink_tokens", 64), serving.value("recent_tokens", 256));
  if (const std::string sensitive = SensitiveSidesText(serving); !sensitive.empty())
    card += "Layers that need more bits: " + sensitive + ".\n\n";
  card +=
      "Attention-KL of each configuration in nats, on held-out rows that see a quantized key "
      "(report.json has details, manifest.json has digests and provenance):\n\n";
  card += MarkdownTable(SummaryTable(report));
  if (report.contains("validation")) card += ValidationText(report.at("validation"));
  return card + ExportText(serving, latents);
}

}  // namespace oscar
