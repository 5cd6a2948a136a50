// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows what oscar-calibrate --auto chose for every layer, compared with a Hadamard rotation with
// clipping on held-out rows, and the cost of windows. Trap: errors of keys are KLs and errors of
// values are relative output errors, so the two cannot be compared.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "export/report/html.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

constexpr size_t kNameCharacters = 48;  // limit for a recipe's name

// Formats one number, or one per head.
std::string Numbers(const Record& list, Format format) {
  std::string html;
  for (const Record& number : list.Items())
    html += (html.empty() ? "" : ", ") + Value(number, format);
  return html;
}

Record ChosenOption(const Record& choice, const char* bits, const char* options) {
  const std::vector<Record> all = choice[options].Items();
  size_t chosen = 0;
  while (all.at(chosen)["bits"].Number() != choice[bits].Number()) ++chosen;
  return all[chosen];
}

std::string Remarks(const Record& choice, const char* fallback, const char* cost) {
  std::string html;
  if (choice["guard"].IsText(fallback)) {
    html += fmt::format(
        "<span class=\"fail\">{} lost to Hadamard + clip, which is exported instead</span>",
        HtmlCut(choice["guard"][fallback].Text(), kNameCharacters));
  }
  if (choice.Has("stability")) {
    const Record stability = choice["stability"];
    if (stability["unstable"].True()) {
      html += fmt::format(
          "{}<span class=\"fail\">unstable: fitting to half of the tokens costs {}{}</span>",
          html.empty() ? "" : "; ", Value(stability[cost], Format::kPercent),
          stability["few_tokens"].True() ? ", and there are few tokens" : "");
    }
  }
  if (choice["refined"].True()) html += html.empty() ? "refined" : "; refined";
  return html;
}

std::string ChoiceTable(const std::vector<Record>& layers) {
  std::vector<TableRow> rows;
  for (const Record& layer : layers) {
    if (!layer.Has("auto")) continue;
    const Record choice = layer["auto"], guard = choice["guard"];
    const auto add = [&](const char* name, const char* recipe, const char* bits,
                         const char* options, const char* check, const char* hadamard,
                         const char* fallback, const char* cost) {
      const Record option = ChosenOption(choice, bits, options);
      const bool heads = option.Has("head_bits");
      rows.push_back(
          {{fmt::format("{}, {}<small>{}</small>", Value(layer["layer_id"], Format::kCount), name,
                        HtmlCut(choice[recipe]["name"].Text(), kNameCharacters)),
            heads ? Numbers(option["head_bits"], Format::kCount)
                  : Value(option["bits"], Format::kCount),
            Numbers(option["clip"], Format::kBits), Value(option["check"], Format::kError),
            Value(guard[check], Format::kError), Value(guard[hadamard], Format::kError),
            Remarks(choice, fallback, cost)},
           "",
           {"", "text", "text", "", "", "", "text"}});
    };
    add("keys", "keys", "k_bits", "k_options", "k", "k_hadamard", "k_fallback", "k_cost");
    add("values", "values", "v_bits", "v_options", "v", "v_hadamard", "v_fallback", "v_cost");
  }
  return Table(
      "Automatic choice",
      {"layer", "bits", "clip ratio", "error", "at 2 bits", "Hadamard + clip at 2 bits", ""}, rows);
}

std::string WindowsTable(const Record& serving) {
  std::vector<TableRow> rows;
  for (const Record& window : serving["windows"].Items()) {
    rows.push_back(
        {{Value(window["sink_tokens"], Format::kCount) + " / " +
              Value(window["recent_tokens"], Format::kCount),
          Value(window["bits_per_element"], Format::kBits),
          window["rows_beyond"].Number() > 0 ? Value(window["kl"], Format::kError) : kNoNumber,
          Value(window["rows_beyond"], Format::kCount)},
         ""});
  }
  return Table(
      "Windows",
      {"sink / recent tokens", "bits per element", "attention-KL", "rows beyond the windows"},
      rows);
}

// Lists the keys or values of layers that need more bits than others, if next-token costs were
// measured.
std::string SensitiveSides(const Record& serving) {
  if (!serving.Has("bits_by") || !serving["bits_by"].Has("sensitive")) return {};
  std::string items;
  for (const Record& side : serving["bits_by"]["sensitive"].Items()) {
    items += fmt::format(
        "<li>{} of layer {}: {} of the total cost of 2 bits to the next token; {}</li>\n",
        side.IsText("side") && side["side"].Text() == "k" ? "keys" : "values",
        Value(side["layer_id"], Format::kCount), Value(side["share"], Format::kPercent),
        side.Has("bits") ? "needs at least " + Value(side["bits"], Format::kBits) + " bits"
                         : std::string("needs more bits than were tried"));
  }
  if (items.empty()) return "<p>No side of a layer needs more bits than the others.</p>\n";
  return "<ul>\n" + items + "</ul>\n";
}

}  // namespace

std::string ChoiceSection(const Record& report) {
  if (!report["serving"].Has("auto")) return {};
  const Record serving = report["serving"]["auto"];
  const std::vector<Record> layers = report["layers"].Items();
  std::string html = fmt::format(
      "<p>Chosen for <code>{}</code>, layer by layer, among candidates fitted to the same moments: "
      "{} bits of codes per element, or {} with a scale and a zero for each quantization group. "
      "Layers with a side that lost to Hadamard + clip on held-out rows, so that Hadamard + clip "
      "is exported: {}. Unstable layers, which would fit worse with half of the tokens: {}.</p>\n",
      Html(serving["for"].Text()), Value(serving["bits_spent"], Format::kBits),
      Value(serving["bits_stored"], Format::kBits),
      Value(serving["hadamard_layers"], Format::kCount),
      Value(serving["unstable_layers"], Format::kCount));
  html += SensitiveSides(serving);
  html += Note(
      "Keys are judged by attention-KL in nats, values by relative output error, in bf16 "
      "arithmetic on held-out rows that were not used for choosing. Several bits or clip ratios: "
      "one for each KV head. The scores of all candidates are in report.json.");
  constexpr size_t kShownAtOnce = 12;
  const std::string table = ChoiceTable(layers);
  html += layers.size() <= kShownAtOnce
              ? table
              : fmt::format("<details><summary>All {} layers</summary>\n{}</details>\n",
                            layers.size(), table);
  html += Note(
      fmt::format("Cost of windows in 16 bits at contexts of {} tokens, and the remaining "
                  "attention-KL, averaged over layers at the bits above; the first row is in use.",
                  Value(serving["windows_priced_at_tokens"], Format::kCount)));
  return html + WindowsTable(serving);
}

}  // namespace oscar
