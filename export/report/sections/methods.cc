// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares all methods on equal terms: charts of error against cost, a table of all numbers, and
// the losses of serving runtimes compared with the methods that they implement.
#include <fmt/format.h>

#include <algorithm>

#include "export/report/arm_table.h"
#include "export/report/html.h"
#include "export/report/pareto.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

const ArmLook* Named(const std::vector<ArmLook>& arms, const std::string& name) {
  for (const ArmLook& look : arms) {
    if (look.arm["name"].Text() == name) return &look;
  }
  return nullptr;
}

// Makes a row per simulated runtime. The table of all arms has its other numbers.
std::string RuntimeTable(const std::vector<ArmLook>& arms) {
  std::vector<TableRow> rows;
  std::vector<Measure> columns = Measures(kLoss);
  std::erase_if(columns, [&](const Measure& column) {
    return std::ranges::none_of(arms, [&](const ArmLook& look) {
      return look.arm.Has("ideal") && look.arm["ideal"].Has(column.loss_name());
    });
  });
  for (const ArmLook& look : arms) {
    if (!look.arm.Has("ideal")) continue;
    const Record ideal = look.arm["ideal"];
    const ArmLook* other = Named(arms, ideal["arm"].Text());
    TableRow row{
        {ArmNameHtml(look), other == nullptr ? kNoNumber : Html(other->label)}, "", {"", "text"}};
    for (const Measure& column : columns) {
      const std::optional<Record> loss = ideal.Find(column.loss_name());
      const Format format = column.format == Format::kPercent ? Format::kPercent : Format::kError;
      row.cells.push_back(loss ? Value(*loss, format) : kNoNumber);
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  std::vector<std::string> header = {"runtime", "against"};
  for (const Measure& column : columns) header.emplace_back(column.heading);
  return "<h3>What runtimes lose</h3>\n" +
         Note(
             "Each runtime simulated as it computes and stores, minus the method that it "
             "implements in exact arithmetic. Above zero is worse, except for “same token” and "
             "“needle”.") +
         Table("Runtimes against the ideal", header, rows);
}

}  // namespace

std::string MethodsSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  std::string html = ParetoCharts(arms, "pareto");
  html += ArmTable(arms, IsOnFront(arms));
  html += Note(
      "The smallest error comes first. Lower is better, except for “same token” (how often the "
      "most likely token stays the same) and “needle”. Attention-KL: KL(S‖Ŝ) at the unquantized "
      "model’s own queries, keys and values, over the rows of the second half of each sequence "
      "that see a quantized key, mean over heads and layers, in nats; end to end: including the "
      "errors of earlier layers. Next-token KL: over the vocabulary, where the query sees a "
      "quantized key. Output error: relative Frobenius norm. Bits: by the paper’s formula, and "
      "counting every stored byte. Small print: 95 % bootstrap intervals over pieces of "
      "sequences.");
  return html + RuntimeTable(arms);
}

}  // namespace oscar
