// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "export/artifact/report.h"
#include "tools/cli/text_table.h"

namespace oscar {
namespace {

std::string Rendered(const ReportTable& table, const std::vector<std::string_view>& words) {
  std::vector<std::string> headings;
  for (const std::string& heading : table.header) {
    const bool is_word = std::ranges::find(words, heading) != words.end();
    headings.push_back(is_word ? heading : ">" + heading);
  }
  TextTable text(headings);
  for (const auto& row : table.rows) text.AddRow(row);
  return text.ToString();
}

// What was chosen for a layer, at the end of its line.
std::string ChoiceText(const AutoChoice& choice) {
  std::string text = fmt::format(" ({}; clip {:.2f}; values {})", choice.keys.Name(),
                                 fmt::join(choice.k_option().clip, "/"), choice.values.Name());
  if (!choice.k_fallback.empty() || !choice.v_fallback.empty())
    text += ", no better than Hadamard + clip on judging rows";
  if (choice.stability.unstable) {
    text += fmt::format(
        ", unstable: fits to half of the tokens cost {:.0f} % more KL and {:.0f} % more output "
        "error than to all of them{}",
        100 * choice.stability.k_cost, 100 * choice.stability.v_cost,
        choice.stability.few_tokens ? ", and there are few" : "");
  }
  return text;
}

}  // namespace

std::string LayerLine(const LayerProgress& layer) {
  const LayerResult& result = layer.result;
  std::string kl;
  for (const ArmResult& arm : result.arms) {
    if (arm.name == "hadamard" || arm.name == "oscar_per_head" || arm.name == "auto")
      kl += fmt::format("{}{} {}", kl.empty() ? ", attention-KL " : ", ", arm.name,
                        arm.rows_beyond == 0 ? "-" : fmt::format("{:.5f}", arm.kl_mean_beyond));
  }
  if (result.automatic.made) kl += ChoiceText(result.automatic);
  return fmt::format(
      "layer {}: {} tokens, {:.2f} s, {:.2f} GB/s, orthogonality {:.1e}, clip K {:.2f} V {:.2f}{}",
      result.moments.layer_id, layer.tokens, layer.seconds,
      static_cast<double>(layer.bytes_read) / layer.seconds / 1e9,
      std::max(result.k.orthogonality, result.v.orthogonality), result.k.clip_ratio,
      result.v.clip_ratio, kl);
}

Json LayerEvent(const LayerProgress& layer, const Json& report) {
  return {{"layer_id", layer.result.moments.layer_id},
          {"tokens", layer.tokens},
          {"seconds", layer.seconds},
          {"bytes_read", layer.bytes_read},
          {"report", report}};
}

std::string ExpertsLine(const LayerSpec& layer, const std::vector<int64_t>& tokens) {
  std::vector<int64_t> sorted = tokens;
  std::ranges::sort(sorted);
  return fmt::format(
      "layer {}: {} experts, tokens per expert {} to {}, median {}; {} of them got none",
      layer.layer_id, tokens.size(), sorted.front(), sorted.back(), sorted[sorted.size() / 2],
      std::ranges::count(sorted, 0));
}

std::string CalibrationTables(const Json& report, const std::filesystem::path& artifact) {
  std::string text = Rendered(SummaryTable(report), {"layer"});
  if (const Json& arms = report.at("summary").at("arms"); !arms.empty()) {
    const double rows = arms.front().at("rows_beyond");
    text = fmt::format(
        "attention-KL of each arm, on {:.0f} held-out rows of a layer that see a quantized "
        "key{}:\n{}",
        rows, rows < 1000 ? " (few: below 1000 such numbers are rough)" : "", text);
  }
  const ReportTable runtimes = RuntimesTable(report.at("serving"), artifact.string());
  if (runtimes.rows.empty()) return text;
  text +=
      "\nwhat each runtime gets (* is what oscar-validate judges; attention-KL on held-out rows "
      "that "
      "see a quantized key and did not choose):\n" +
      Rendered(runtimes, {"runtime", "checkpoint", "writer", "exported by"});
  const ReportTable budgets = BudgetsTable(report.at("serving"), artifact.string());
  if (!budgets.rows.empty())
    text += "\nwhat any gets at each budget:\n" + Rendered(budgets, {"exported by"});
  for (const Json& row : report.at("serving").at("runtimes")) {
    if (row.at("choice") == kHeadlineChoice &&
        row.at("kl").get<double>() > (1 - kWorthFit) * row.at("hadamard_kl").get<double>())
      return text + "no fit helps this model on this text: a plain Hadamard rotation is as good\n";
  }
  return text;
}

}  // namespace oscar
