// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/arm_table.h"

#include <algorithm>
#include <numeric>

#include "export/report/html.h"

namespace oscar {
namespace {

std::string WithInterval(const Record& holder, std::string_view mean, std::string_view interval,
                         Format format) {
  std::string html = Value(holder[mean], format);
  if (holder.Has(interval))
    html += "<small>" + Interval(holder[interval], format, "–") + "</small>";
  return html;
}

std::string Perplexity(const Record& m) {
  return WithInterval(m, "perplexity", "perplexity_interval", Format::kPerplexity);
}
std::string PerplexityRatio(const Record& m) {
  return WithInterval(m, "ppl_ratio", "ppl_ratio_interval", Format::kPerplexity);
}
std::string TokenKl(const Record& m) { return Value(m["token_kl"]["mean"], Format::kError); }
std::string SameToken(const Record& m) { return Value(m["top1_agreement"], Format::kPercent); }

constexpr ArmColumn kColumns[] = {
    {"bits", "bits_per_element",
     [](const Record& m) {
       return Value(m["paper"], Format::kBits) + "<small>" + Value(m["actual"], Format::kBits) +
              " stored</small>";
     }},
    {"attention-KL", "local",
     [](const Record& m) { return WithInterval(m["kl"], "mean", "interval", Format::kError); }},
    {"attention-KL end to end", "end_to_end",
     [](const Record& m) { return WithInterval(m["kl"], "mean", "interval", Format::kError); }},
    {"output error", "local",
     [](const Record& m) { return Value(m["output_rel_error"], Format::kError); }},
    {"perplexity", "text", Perplexity},
    {"ratio", "text", PerplexityRatio},
    {"next-token KL", "text", TokenKl},
    {"same token", "text", SameToken},
    {"perplexity, own words", "own_words", Perplexity},
    {"ratio, own words", "own_words", PerplexityRatio},
    {"next-token KL, own words", "own_words", TokenKl},
    {"same token, own words", "own_words", SameToken},
    {"tool calls", "tool_call",
     [](const Record& m) {
       return m.Has("accuracy") ? WithInterval(m, "accuracy", "accuracy_interval", Format::kPercent)
                                : std::string(kNoNumber);
     }},
    {"argument KL", "tool_call",
     [](const Record& m) {
       return WithInterval(m["token_kl"], "mean", "interval", Format::kError);
     }},
    {"departs after", "reasoning",
     [](const Record& m) {
       return WithInterval(m, "tokens_until", "tokens_until_interval", Format::kBits);
     }},
    {"continuation KL", "reasoning",
     [](const Record& m) {
       return WithInterval(m["token_kl"], "mean", "interval", Format::kError);
     }},
    {"needle", "needle", [](const Record& m) { return Value(m["accuracy"], Format::kPercent); }},
};

}  // namespace

std::string EstimateCell(const Record& holder, std::string_view member) {
  if (!holder.Has(member)) return kNoNumber;
  return WithInterval(holder[member], "mean", "interval", Format::kError);
}

std::span<const ArmColumn> ArmColumns() { return kColumns; }

bool AnyArmHas(const std::vector<ArmLook>& arms, std::string_view member) {
  return std::ranges::any_of(arms, [&](const ArmLook& look) { return look.arm.Has(member); });
}

std::string ArmTable(const std::vector<ArmLook>& arms, const std::vector<bool>& on_front) {
  std::vector<std::string> header = {"arm"};
  for (const ArmColumn& column : kColumns) {
    if (AnyArmHas(arms, column.member)) header.emplace_back(column.heading);
  }
  std::vector<size_t> order(arms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return arms[i].arm["local"]["kl"]["mean"].Number(); });
  std::vector<TableRow> rows;
  for (const size_t i : order) {
    const ArmLook& look = arms[i];
    std::string name = ArmNameHtml(look);
    if (on_front[i]) name.insert(name.rfind("</span>"), " <span class=\"tag\">front</span>");
    TableRow row{{std::move(name)}, ArmRowCss(look)};
    for (const ArmColumn& column : kColumns) {
      if (!AnyArmHas(arms, column.member)) continue;
      row.cells.push_back(look.arm.Has(column.member) ? column.cell(look.arm[column.member])
                                                      : kNoNumber);
    }
    rows.push_back(std::move(row));
  }
  return Table("All arms", header, rows);
}

}  // namespace oscar
