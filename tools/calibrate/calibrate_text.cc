// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "calib/consumers.h"
#include "export/artifact/report.h"
#include "export/evaluate/bits_per_element.h"
#include "tools/cli/command_line.h"  // ShellQuote
#include "tools/cli/console.h"       // AppendWrapped
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

// Formats layer ids like "0, 2 to 5".
std::string Listed(const std::vector<int>& ascending) {
  std::string text;
  for (size_t i = 0; i < ascending.size(); ++i) {
    const size_t first = i;
    while (i + 1 < ascending.size() && ascending[i + 1] == ascending[i] + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ascending[first]);
    if (i > first) text += fmt::format("{}{}", i > first + 1 ? " to " : ", ", ascending[i]);
  }
  return text;
}

// Warns about layers whose choice differs between fits to two halves of the tokens; "" if none do.
std::string UnstableText(const Json& layers) {
  std::vector<int> unstable;
  double keys = 0, values = 0;
  for (const Json& layer : layers) {
    const Json& choice = layer.value("auto", Json::object());
    if (!choice.contains("stability")) continue;
    const Json& stability = choice.at("stability");
    if (!stability.at("unstable").get<bool>()) continue;
    unstable.push_back(layer.at("layer_id"));
    keys = std::max(keys, stability.at("k_cost").get<double>());
    values = std::max(values, stability.at("v_cost").get<double>());
  }
  if (unstable.empty()) return "";
  const std::string why =
      std::max(keys, values) > kStableCost
          ? fmt::format("cost up to {:.0f} % more KL and {:.0f} % more output error", 100 * keys,
                        100 * values)
          : "have too few tokens for each dimension";
  std::string text;
  AppendWrapped(
      fmt::format("unstable: {} of {} layers ({}): fits to half of the {} tokens {}; give more "
                  "--tokens (twice as many, say), or --data that resembles what the model will be "
                  "used for",
                  unstable.size(), layers.size(), Listed(unstable),
                  layers.at(0).at("tokens").get<int64_t>(), why),
      "  ", 100, &text);
  return text;
}

// Returns a name for oscar-zoo publish: the model's name on the Hub, or the artifact's name.
std::string ZooNameFor(const std::string& model, const std::filesystem::path& artifact) {
  const bool in_hub = std::ranges::count(model, '/') == 1 && !std::filesystem::exists(model);
  if (in_hub) return model.substr(0, model.find('@'));
  const std::string name = artifact.filename().string();
  return "local/" + (name.ends_with("-oscar") ? name.substr(0, name.size() - 6) : name);
}

std::string_view TargetOf(const Json& row) {
  return ExportTargetOf(row.at("runtime").get_ref<const std::string&>());
}

}  // namespace

std::string LayerLine(const LayerProgress& layer) {
  const LayerResult& result = layer.result;
  std::string line = fmt::format("layer {}: {:.1f} s", result.moments.layer_id, layer.seconds);
  bool first = true;
  for (const auto& [name, shown] :
       {std::pair("hadamard", "Hadamard"), std::pair("oscar_per_head", "OSCAR"),
        std::pair("auto", "chosen")}) {
    const auto arm = std::ranges::find(result.arms, name, &ArmResult::name);
    if (arm == result.arms.end()) continue;
    line += fmt::format("{} {} {}", first ? ", attention-KL" : ",", shown,
                        arm->rows_beyond == 0 ? "-" : fmt::format("{:.4f}", arm->kl_mean_beyond));
    first = false;
  }
  const AutoChoice& choice = result.automatic;
  if (!choice.made) return line;
  const bool keys = !choice.k_fallback.empty(), values = !choice.v_fallback.empty();
  return line + fmt::format(" ({})", keys && values ? "Hadamard for both"
                                     : keys         ? "Hadamard for keys"
                                     : values       ? "Hadamard for values"
                                                    : KeyTransformName(choice.keys.kind));
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

std::string CalibrationTables(const Json& report, bool layers) {
  const Json& arms = report.at("summary").at("arms");
  const double rows = arms.empty() ? 0 : arms.front().at("rows_beyond").get<double>();
  const std::string measured =
      fmt::format("attention-KL on {:.0f} held-out rows of a layer that see a quantized key{}",
                  rows, rows < 1000 ? " (fewer than 1000 rows give only rough numbers)" : "");
  Json serving = report.at("serving");
  if (serving.contains("runtimes")) {
    std::ranges::stable_sort(serving["runtimes"].get_ref<Json::array_t&>(), {},
                             [](const Json& row) { return row.at("kl").get<double>(); });
  }
  const ReportTable runtimes = RuntimesTable(serving, "");
  std::string text = UnstableText(report.at("layers"));
  if (layers || runtimes.rows.empty()) {
    text += (arms.empty() ? "" : measured + ", for each configuration:\n") +
            Rendered(SummaryTable(report), {"layer"});
  }
  if (runtimes.rows.empty()) return text;
  text += "choices for each runtime, best first (* marks the one that oscar-validate judges):\n" +
          Rendered(runtimes, {"runtime", "checkpoint", "writer"});
  if (!layers) AppendWrapped(measured, "  ", 100, &text);
  if (const std::string bits = BitsText(serving); !bits.empty())
    AppendWrapped("bits of the choice marked *: " + bits, "  ", 100, &text);
  if (const ReportTable budgets = BudgetsTable(serving, ""); !budgets.rows.empty()) {
    text +=
        "choices for the runtime 'any' at each budget (oscar-export --to oscar-torch --bits B):\n" +
        Rendered(budgets, {});
  }
  for (const Json& row : serving.at("runtimes")) {
    if (row.at("choice") == kHeadlineChoice &&
        row.at("kl").get<double>() > (1 - kWorthFit) * row.at("hadamard_kl").get<double>())
      return text +
             "no fitted rotation helps this model on this text; a plain Hadamard rotation is as "
             "good\n";
  }
  return text;
}

std::string NextCommands(const Json& report, const std::filesystem::path& artifact,
                         const CalibrateOptions& options) {
  const std::string path = ShellQuote(artifact.string());
  const std::string model = options.model.model.empty() ? "MODEL" : ShellQuote(options.model.model);
  const std::string device =
      options.model.device == "auto" ? "" : " --device " + ShellQuote(options.model.device);
  std::string text = fmt::format(
      "next:\n  oscar-validate {} --model {}{} --gate 'ppl_ratio<=1.02'\n", path, model, device);
  const auto add_export = [&](std::string_view target, std::string_view more = "") {
    text += fmt::format("  oscar-export {} --to {}{} -o {}\n", path, target, more,
                        ShellQuote(fmt::format("{}-{}", artifact.string(), target)));
  };
  // The runtime with the lowest KL, and the one that is validated.
  const Json *best = nullptr, *judged = nullptr;
  const Json runtimes = report.at("serving").value("runtimes", Json::array());
  for (const Json& row : runtimes) {
    if (TargetOf(row).empty()) continue;
    if (row.at("choice") == kHeadlineChoice && judged == nullptr) judged = &row;
    if (!row.at("fold_checkpoint").get<bool>() &&
        (best == nullptr || row.at("kl").get<double>() < best->at("kl").get<double>()))
      best = &row;
  }
  if (runtimes.empty()) {
    add_export("sglang");
  } else if (!options.types.runtime.empty()) {
    add_export(options.types.runtime);
  } else {
    if (best != nullptr && best != judged) add_export(TargetOf(*best));
    if (judged != nullptr && judged->at("fold_checkpoint").get<bool>()) {
      add_export(TargetOf(*judged), " --folded");
      add_export("folded-checkpoint", fmt::format(" --for {} --model {}",
                                                  judged->at("runtime").get<std::string>(), model));
    } else if (judged != nullptr) {
      add_export(TargetOf(*judged));
    }
  }
  if (report.at("serving").contains("auto") && !report.at("serving").contains("budgets") &&
      options.types.runtime.empty() && !options.model.model.empty()) {
    text += fmt::format(
        "  oscar-calibrate {}{} --bits 2,2.5,3,4 -o {}  # a curve; add this run's other options\n",
        model, device, ShellQuote(fmt::format("{}-bits", artifact.string())));
  }
  const char* zoo = std::getenv("OSCAR_ZOO");
  const bool has_zoo = zoo != nullptr && *zoo != 0;
  if (!has_zoo && !std::filesystem::exists("zoo")) text += "  oscar-zoo init zoo\n";
  return text + fmt::format("  oscar-zoo publish {}{} --name {} --model {}\n", path,
                            has_zoo ? "" : " --zoo zoo",
                            ShellQuote(ZooNameFor(options.model.model, artifact)), model);
}

}  // namespace oscar
