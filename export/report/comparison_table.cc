// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "export/measures/table.h"
#include "export/report/scatter_chart.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

struct Column {
  const char* heading;
  const char* member;  // dotted path within the validation
};
// Columns about the run, which are the same for all arms of a report.
constexpr Column kRun[] = {
    {"seed", "settings.seed"},
    {"bootstrap", "settings.bootstrap"},
    {"text", "data.name"},
    {"text_digest", "data.digest"},
    {"oscar_version", "program.version"},
    {"oscar_commit", "program.git_commit"},
};

std::string ModelName(const Json& model) {
  const Json& of = model.at("model");
  return of.contains("id") && of.at("id").is_string() ? of.at("id").get<std::string>()
                                                      : std::string("unknown model");
}

// Quotes text for CSV. Doubles its quotes and prevents spreadsheets from running a formula.
std::string CsvText(const std::string& text) {
  std::string quoted = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos)
    quoted += '\'';
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// Escapes text of a report for a table cell: no markup, no end of the cell or of the line.
std::string MarkdownText(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      cell += ' ';
    } else if (std::string_view("\\`*[]<>|&").find(c) != std::string_view::npos) {
      cell += fmt::format("&#{};", static_cast<int>(byte));
    } else {
      cell += c;
    }
  }
  return cell;
}

// Puts a name between backticks. Markdown cannot escape there, so unsafe characters become '?'.
std::string MarkdownCode(const std::string& text) {
  std::string code = "`";
  for (const char c : text)
    code += static_cast<unsigned char>(c) < 0x20 || c == '`' || c == '|' ? '?' : c;
  return code + '`';
}

// Formats with up to three significant digits: .0334, 1.32, 24.9. Values below 1e-15 are rounding
// errors of float64 and become 0.
std::string Kl(double value) {
  if (value < 1e-15) return "0";
  if (value < 0.00005) return fmt::format("{:.0e}", value);
  const int decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 5);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  return text.starts_with("0.") ? text.substr(1) : text;
}
std::string Perplexity(double value) {
  if (value >= 1000) return "collapse";
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : value < 100 ? 1 : 0);
}

const Json* ArmOf(const Json& model, const std::string& name) {
  for (const Json& arm : model.at("validation").at("arms")) {
    if (arm.at("name") == name) return &arm;
  }
  return nullptr;
}

std::string ModelCell(const Json& arm) {
  std::vector<std::string> numbers;
  for (const char* kl : {"local.kl.mean", "text.token_kl.mean"})
    if (const Json* number = FindAt(arm, kl)) numbers.push_back(Kl(number->get<double>()));
  if (const Json* perplexity = FindAt(arm, "text.perplexity"))
    numbers.push_back(Perplexity(perplexity->get<double>()));
  return numbers.empty() ? "–" : fmt::format("{}", fmt::join(numbers, ", "));
}

// Lists for each model the arms that no other arm beats in both stored bits and next-token KL.
std::string Fronts(const Json& models) {
  std::string text;
  for (const Json& model : models) {
    std::vector<std::pair<double, double>> points;
    std::vector<std::string> names, front;
    for (const Json& arm : model.at("validation").at("arms")) {
      const Json* kl = FindAt(arm, "text.token_kl.mean");
      if (kl == nullptr || !(*kl > 0.0) || arm.value("null_control", false)) continue;
      points.emplace_back(arm.at("bits_per_element").at("actual").get<double>(), kl->get<double>());
      names.push_back(arm.at("name"));
    }
    for (const size_t i : ParetoFront(points)) {
      front.push_back(fmt::format("{} {:.2f} ({})", MarkdownCode(names[i]), points[i].first,
                                  Kl(points[i].second)));
    }
    if (front.empty()) continue;
    text += fmt::format("- {}: {}\n", MarkdownText(ModelName(model)), fmt::join(front, ", "));
  }
  return text.empty() ? text
                      : "\nNo other configuration has both fewer stored bits and less next-token "
                        "KL (in brackets) than these:\n\n" +
                            text;
}

// Returns the bits per element of the arm in all models that have it. They differ if head
// dimensions or layers differ.
std::string BitsCell(const Json& models, const std::string& name, const char* which) {
  std::vector<std::string> different;
  for (const Json& model : models) {
    const Json* arm = ArmOf(model, name);
    if (arm == nullptr) continue;
    const std::string bits =
        fmt::format("{:.2f}", arm->at("bits_per_element").at(which).get<double>());
    if (std::ranges::find(different, bits) == different.end()) different.push_back(bits);
  }
  return fmt::format("{}", fmt::join(different, " / "));
}

std::string Row(const Json& models, const std::string& name) {
  std::string description, cells;
  for (const Json& model : models) {
    const Json* arm = ArmOf(model, name);
    if (arm != nullptr && description.empty())
      description = MarkdownText(arm->value("description", std::string()));
    cells += fmt::format(" {} |", arm == nullptr ? "–" : ModelCell(*arm));
  }
  return fmt::format("| {}<br>{} | {} | {} |{}\n", description, MarkdownCode(name),
                     BitsCell(models, name, "paper"), BitsCell(models, name, "actual"), cells);
}

std::string Table(const Json& models, const std::vector<std::string>& names) {
  std::string head = "| method | bits | stored |", rule = "|---|---|---|", rows;
  for (const Json& model : models) {
    head += fmt::format(" {} |", MarkdownText(ModelName(model)));
    rule += "---|";
  }
  for (const std::string& name : names) rows += Row(models, name);
  return head + "\n" + rule + "\n" + rows;
}

}  // namespace

std::string ComparisonCsv(const Json& comparison) {
  std::string csv = "model,arm,method,description,clip,windows,null_control";
  for (const Measure& measure : Measures()) {
    csv += fmt::format(",{}", measure.name);
    if (measure.Is(kInterval)) csv += fmt::format(",{0}_low,{0}_high", measure.name);
  }
  for (const Column& column : kRun) csv += fmt::format(",{}", column.heading);
  csv += "\r\n";
  for (const Json& model : comparison.at("models")) {
    for (const Json& arm : model.at("validation").at("arms")) {
      csv += CsvText(ModelName(model));
      for (const char* key : {"name", "method", "description"})
        csv += "," + CsvText(arm.value(key, std::string()));
      for (const char* key : {"clip", "windows", "null_control"})
        csv += arm.value(key, false) ? ",1" : ",0";
      for (const Measure& measure : Measures()) {
        const Json* number = FindAt(arm, measure.path);
        csv += "," + (number == nullptr ? "" : number->dump());
        if (!measure.Is(kInterval)) continue;
        const Json* ends = FindAt(arm, measure.interval());
        csv +=
            ends == nullptr ? ",," : fmt::format(",{},{}", ends->at(0).dump(), ends->at(1).dump());
      }
      for (const Column& column : kRun) {
        csv += ",";
        const Json* value = FindAt(model.at("validation"), column.member);
        if (value != nullptr && value->is_number()) csv += value->dump();
        if (value != nullptr && value->is_string()) csv += CsvText(*value);
      }
      csv += "\r\n";
    }
  }
  return csv;
}

std::string ComparisonMarkdown(const Json& comparison, const std::vector<std::string>& rows) {
  const Json& models = comparison.at("models");
  std::vector<std::string> all, others;
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const Json& model : models) {
    for (const Json& arm : model.at("validation").at("arms")) {
      if (const auto name = arm.at("name").get<std::string>(); !has(all, name)) all.push_back(name);
    }
  }
  for (const std::string& name : rows) {
    if (!has(all, name))
      throw UsageError(fmt::format("--table-rows: no report has a configuration '{}'", name));
  }
  if (rows.empty()) return Table(models, all) + Fronts(models);
  for (const std::string& name : all) {
    if (!has(rows, name)) others.push_back(name);
  }
  std::string text = Table(models, rows) + Fronts(models);
  if (others.empty()) return text;
  return text + fmt::format("\n<details><summary>{} more</summary>\n\n{}\n</details>\n",
                            others.size(), Table(models, others));
}

std::string WithTable(std::string_view page, std::string_view table, std::string_view source) {
  const size_t begin = page.find(kTableBegin), end = page.find(kTableEnd);
  if (begin == page.npos || end == page.npos || end < begin ||
      page.find(kTableBegin, begin + 1) != page.npos ||
      page.find(kTableEnd, end + 1) != page.npos) {
    throw InputError(fmt::format(
        "{}: expected exactly one line '{}', followed by exactly one line '{}'", source,
        kTableBegin.substr(0, kTableBegin.size() - 1), kTableEnd.substr(0, kTableEnd.size() - 1)));
  }
  const size_t after = begin + kTableBegin.size();
  return fmt::format("{}{}{}", page.substr(0, after), table, page.substr(end));
}

}  // namespace oscar
