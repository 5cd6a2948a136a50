// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// report.html from report.json: numbers are printed from the record, never recomputed. Trap: text
// from a model or data set name is untrusted; everything goes through Escape().
#include <fmt/format.h>

#include <string>

#include "export/artifact/report.h"

namespace oscar {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8884;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dd{margin:0;overflow-wrap:anywhere}
@media(max-width:30rem){dl{display:block}dd{margin:0 0 .5rem}}
)";

std::string Escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Row(const char* cell, const std::vector<std::string>& cells) {
  std::string row = "<tr>";
  for (const std::string& text : cells) row += fmt::format("<{0}>{1}</{0}>", cell, Escape(text));
  return row + "</tr>\n";
}

std::string Table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"wide\"><table><thead>" + Row("th", header) + "</thead><tbody>\n";
  for (const auto& row : rows) html += Row("td", row);
  return html + "</tbody></table></div>\n";
}

std::string Number(const Json& value) { return fmt::format("{:.6g}", value.get<double>()); }

std::string Provenance(const Json& report) {
  std::string html = "<dl>\n";
  for (const auto& [key, value] : report.items()) {
    if (key == "$schema" || key == "layers" || key == "summary") continue;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Escape(key),
                        Escape(value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return html + "</dl>\n";
}

}  // namespace

std::string ReportPage(const Json& report) {
  const Json& summary = report.at("summary");
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>oscar "
      "calibration report</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<h1>Calibration report</h1>\n",
      kStyle);
  html += Provenance(report);

  html += "<h2>Attention error on held-out rows, mean over layers</h2>\n";
  if (summary.at("arms").empty()) {
    html += "<p>No tokens were held out, so nothing was measured.</p>\n";
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, arm] : summary.at("arms").items()) {
      rows.push_back({name, Number(arm.at("kl_mean")), Number(arm.at("kl_mean_beyond")),
                      Number(arm.at("kl_max")), Number(arm.at("output_rel_error")),
                      Number(arm.at("kl_mean_no_windows")),
                      Number(arm.at("output_rel_error_no_windows"))});
    }
    html += Table({"cache", "KL (nats)", "KL beyond windows", "largest KL", "output error",
                   "KL without windows", "output error without windows"},
                  rows);
    html +=
        "<p>KL(S‖Ŝ) of the attention rows against full precision; the first and the most recent "
        "tokens are kept in 16 bits except "
        "in the last two columns. Output error: relative Frobenius norm.</p>\n";
  }

  html += "<h2>Layers</h2>\n";
  const ReportTable table = SummaryTable(report);
  html += Table(table.header, table.rows);
  html += fmt::format(
      "<p>Worst orthogonality max|RᵀR − I|: {} in float64, {} after the cast to float32. Worst "
      "eigen-residual: {}.</p>\n",
      Number(summary.at("orthogonality")), Number(summary.at("float32_orthogonality")),
      Number(summary.at("eigen_residual")));
  return html + "</body>\n</html>\n";
}

}  // namespace oscar
