// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "export/report/arm_table.h"
#include "export/report/html.h"
#include "export/report/page_shell.h"
#include "export/report/pareto.h"
#include "export/report/report_schema.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Members of an arm that a comparison keeps.
constexpr const char* kArmMembers[] = {"name",    "method",       "description",      "clip",
                                       "windows", "null_control", "bits_per_element", "ideal"};
// Members of an arm's parts that a comparison keeps, in addition to measures and their intervals.
constexpr std::string_view kPaths[] = {"end_to_end.output_rel_error", "own_words.scored_tokens",
                                       "needle.answer_nll", "needle.by_length",
                                       "needle.by_length_depth"};

Json Reduced(const Json& arm) {
  Json reduced = Json::object();
  for (const char* member : kArmMembers) {
    if (arm.contains(member)) reduced[member] = arm[member];
  }
  const auto keep = [&](std::string_view path) {
    const size_t part_end = path.find('.'), end = path.find('.', part_end + 1);
    const std::string part(path.substr(0, part_end)),
        member(path.substr(part_end + 1, end - part_end - 1));
    if (const Json* value = FindAt(arm, path.substr(0, end))) reduced[part][member] = *value;
  };
  for (const Measure& measure : Measures()) {
    keep(measure.path);
    keep(measure.interval());
  }
  for (const std::string_view path : kPaths) keep(path);
  return reduced;
}

struct Model {
  std::string name;  // plain text, unique
  Record record;
  std::vector<ArmLook> arms;

  const ArmLook* Arm(const std::string& arm) const {
    const auto found = std::ranges::find_if(
        arms, [&](const ArmLook& look) { return look.arm["name"].Text() == arm; });
    return found == arms.end() ? nullptr : &*found;
  }
};

std::vector<Model> Models(const Record& comparison) {
  std::vector<Model> models;
  std::map<std::string, int> seen;
  for (const Record& record : comparison["models"].Items()) {
    std::string name = record["model"].TextOr("id", "unknown model");
    if (const int times = ++seen[name]; times > 1) name += fmt::format(" ({})", times);
    models.push_back({name, record, LookOfArms(record["validation"])});
  }
  return models;
}

// Returns the arms of all models, in order of attention-KL on the first model that has them.
std::vector<std::string> ArmNames(const std::vector<Model>& models) {
  std::vector<std::string> names;
  for (const Model& model : models) {
    std::vector<const ArmLook*> order;
    for (const ArmLook& look : model.arms) order.push_back(&look);
    std::ranges::stable_sort(
        order, {}, [](const ArmLook* look) { return look->arm["local"]["kl"]["mean"].Number(); });
    for (const ArmLook* look : order) {
      const std::string name = look->arm["name"].Text();
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::string ColumnTable(const Measure& column, const std::vector<Model>& models,
                        const std::vector<std::string>& names) {
  std::vector<std::string> header = {"configuration"};
  for (const Model& model : models) header.push_back(HtmlCut(model.name, 40));
  std::vector<TableRow> rows;
  for (const std::string& name : names) {
    TableRow row;
    bool any = false;
    for (const Model& model : models) {
      const ArmLook* look = model.Arm(name);
      if (look != nullptr && row.cells.empty()) {
        row.cells.push_back(ArmNameHtml(*look));
        row.css = ArmRowCss(*look);
      }
    }
    for (const Model& model : models) {
      const ArmLook* look = model.Arm(name);
      const bool has = look != nullptr && look->arm.Has(column.part());
      any = any || has;
      row.cells.push_back(has ? MeasureCell(column, look->arm) : kNoNumber);
    }
    if (any) rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  return fmt::format("<h3>{}</h3>\n", column.heading) + Table(column.heading, header, rows);
}

// Lists the settings that differ between the models. Results can differ because of these alone.
std::string Differences(const std::vector<Model>& models) {
  std::set<std::string> keys;
  for (const Model& model : models) {
    for (const auto& [key, value] : model.record["validation"]["settings"].Members())
      keys.insert(key);
  }
  std::string html;
  for (const std::string& key : keys) {
    std::vector<std::string> values;
    for (const Model& model : models) {
      const Record settings = model.record["validation"]["settings"];
      values.push_back(settings.Has(key) ? settings[key].Text() : kNoNumber);
    }
    if (std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end()) continue;
    std::string list;
    for (const std::string& value : values)
      list += (list.empty() ? "" : " · ") + HtmlCut(value, 80);
    html += fmt::format("<dt><code>{}</code></dt><dd>{}</dd>\n", HtmlCut(key, 40), list);
  }
  if (html.empty()) return Note("All models were measured with the same settings.");
  return Note("Settings that differ between the models, in their order:") + "<dl>\n" + html +
         "</dl>\n";
}

}  // namespace

Json CombineReports(const std::vector<NamedReport>& reports) {
  if (reports.empty()) throw InputError("no report to compare");
  Json models = Json::array();
  for (const auto& [source, report, date] : reports) {
    CheckReport(report, source);
    if (!report.contains("validation")) {
      throw InputError(
          fmt::format("{}: was not validated; run oscar-validate on that artifact first", source));
    }
    const Json& validation = report["validation"];
    Json settings = validation["settings"];
    settings.erase("configuration");
    settings.erase("arms");
    Json arms = Json::array();
    for (const Json& arm : validation["arms"]) arms.push_back(Reduced(arm));
    models.push_back({{"source", source},
                      {"model", validation.value("model", report["model"])},
                      {"validation",
                       {{"headline_arm", validation["headline_arm"]},
                        {"data", validation["data"]},
                        {"program", validation["program"]},
                        {"settings", settings},
                        {"arms", arms}}}});
  }
  return {{"$schema", {{"name", kComparisonSchema}, {"version", kComparisonVersion}}},
          {"models", models}};
}

std::string ComparisonPage(const Json& comparison) {
  const JsonText text(comparison, "comparison");
  const Record record(text.root());
  const std::vector<Model> models = Models(record);
  const std::vector<std::string> names = ArmNames(models);
  std::string tables;
  for (const Measure& column : Measures(kPage)) tables += ColumnTable(column, models, names);
  tables += Note(
      "Configurations in order of attention-KL. Lower is better, except for “same token” and "
      "“needle”. Small print: 95 % bootstrap intervals over pieces of sequences, and bits counting "
      "every stored byte.");
  std::vector<PageSection> sections;
  std::string title;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string name = HtmlCut(models[i].name, 60), id = fmt::format("model-{}", i + 1);
    title += (i == 0 ? "" : ", ") + models[i].name;
    sections.push_back({id, name, name, ParetoCharts(models[i].arms, id)});
  }
  sections.push_back({"tables", "Tables", "Models side by side", tables});
  sections.push_back({"settings", "Settings", "Settings", Differences(models)});
  return RenderPage(
      title,
      fmt::format("<p class=\"over\">KV cache methods</p>\n<h1>Methods on {} model{}</h1>\n",
                  models.size(), models.size() == 1 ? "" : "s"),
      sections,
      fmt::format("Schema {} version {}. Every number is printed from comparison.json; the page's "
                  "source has its exact value and its place there.",
                  kComparisonSchema, kComparisonVersion));
}

}  // namespace oscar
