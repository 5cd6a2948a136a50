// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See model_card.h. Trap: model and data names come from outside; front matter values are quoted as
// JSON strings, which YAML reads.
#include "export/artifact/model_card.h"

#include <fmt/format.h>

#include "export/artifact/report.h"

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

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '|' || c == '<' || c == '>') c = ' ';
  }
  return text;
}

}  // namespace

std::string ModelCard(const Json& report) {
  const std::string model = report.at("model").value("id", std::string("unknown model"));
  const std::string data = report.at("data").value("name", std::string("unknown data"));
  const Json& serving = report.at("serving");
  std::string card = fmt::format(
      "---\nlibrary_name: oscar\nbase_model: {}\ntags:\n- kv-cache\n- int2\n- oscar\n---\n\n",
      Json(model).dump());
  card += fmt::format("# INT2 KV-cache rotations for {}\n\n", OneLine(model));
  card += fmt::format(
      "Rotations of keys and values (R = U H P, arXiv 2605.17757) fitted offline to the attention "
      "of this model on {}: per KV head, and shared by the "
      "heads of a layer. A token is a row vector: the cache stores k R_K and v R_V quantized to 2 "
      "bits; queries are rotated by the same R_K, "
      "the attention output by R_V transposed. Value target: {}. Composition: {}.\n\n",
      OneLine(data), report.at("calibration").value("value_target", std::string("unknown")),
      report.at("calibration").value("composition", std::string("unknown")));
  card += fmt::format(
      "Recommended serving parameters: clip ratio K {:.2f}, V {:.2f} (shared rotations: {:.2f}, "
      "{:.2f}), {} sink and {} recent tokens in 16 bits.\n\n",
      serving.at("k_clip_ratio").get<double>(), serving.at("v_clip_ratio").get<double>(),
      serving.at("k_clip_ratio_shared").get<double>(),
      serving.at("v_clip_ratio_shared").get<double>(), serving.value("sink_tokens", 64),
      serving.value("recent_tokens", 256));
  card +=
      "Attention-KL in nats on held-out rows, with those windows (details in report.json, digests "
      "and provenance in manifest.json):\n\n";
  card += MarkdownTable(SummaryTable(report));
  card +=
      "\nWrite the files that SGLang loads with `oscar-export ARTIFACT --to sglang -o "
      "DIRECTORY`.\n";
  return card;
}

}  // namespace oscar
