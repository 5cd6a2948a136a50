// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calib/consumers.h"
#include "export/report/report_schema.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int64_t kSpectrumPoints = 64;
constexpr const char* kNoRows = "-";  // shown instead of a number that was not measured

// Removes the last column, which holds commands.
void DropCommands(ReportTable& table) {
  table.header.pop_back();
  for (std::vector<std::string>& row : table.rows) row.pop_back();
}

// Adds the spectrum: eigenvalues divided by their trace, in descending order, at evenly spaced
// ranks, averaged over rotations. Adds nothing for data-free rotations, which have no eigenvalues,
// or if a trace is zero.
void AddSpectrum(const SideResult& side, Json& json) {
  if (side.eigenvalues.empty()) return;
  OSCAR_CHECK_EQ(static_cast<int64_t>(side.eigenvalues.size()), side.num_rotations * side.dim);
  const int64_t points = std::min(side.dim, kSpectrumPoints);
  std::vector<int64_t> ranks(points);
  for (int64_t i = 0; i < points; ++i) {
    ranks[i] = points == 1
                   ? 0
                   : std::llround(static_cast<double>(i) * static_cast<double>(side.dim - 1) /
                                  static_cast<double>(points - 1));
  }
  std::vector<double> spectrum(points, 0.0);
  for (int64_t r = 0; r < side.num_rotations; ++r) {
    const double* ascending = side.eigenvalues.data() + r * side.dim;
    double trace = 0;
    for (int64_t i = 0; i < side.dim; ++i) trace += ascending[i];
    if (trace <= 0) return;
    for (int64_t i = 0; i < points; ++i) {
      spectrum[i] +=
          ascending[side.dim - 1 - ranks[i]] / trace / static_cast<double>(side.num_rotations);
    }
  }
  json["spectrum"] = spectrum;
  json["spectrum_ranks"] = ranks;
}

Json SideReport(const SideResult& side) {
  Json json = {{"num_rotations", side.num_rotations},
               {"dim", side.dim},
               {"clip_ratio", side.clip_ratio},
               {"orthogonality", side.orthogonality},
               {"float32_orthogonality", side.float32_orthogonality},
               {"eigen_residual", side.eigen_residual},
               {"min_relative_gap", side.min_relative_gap},
               {"importance_max_over_mean", side.importance_max_over_mean}};
  if (!side.clip_error.empty()) json["clip_error"] = side.clip_error;
  if (!side.clip_threshold.empty()) json["clip_threshold"] = side.clip_threshold;
  AddSpectrum(side, json);
  return json;
}

// Returns the largest or smallest value of a field over all sides of all layers.
double OverSides(const std::vector<Json>& layers, const char* key, double start,
                 const std::function<double(double, double)>& pick) {
  double value = start;
  for (const Json& layer : layers) {
    for (const auto& [name, side] : layer.at("sides").items())
      value = pick(value, side.at(key).get<double>());
  }
  return value;
}

}  // namespace

Json ArmReport(const ArmResult& arm) {
  return {{"rows", arm.rows},
          {"rows_beyond", arm.rows_beyond},
          {"kl_mean", arm.kl_mean},
          {"kl_mean_beyond", arm.kl_mean_beyond},
          {"kl_max", arm.kl_max},
          {"output_rel_error", arm.output_rel_error},
          {"output_rel_error_beyond", arm.output_rel_error_beyond},
          {"kl_mean_no_windows", arm.kl_mean_no_windows},
          {"output_rel_error_no_windows", arm.output_rel_error_no_windows}};
}

Json LayerReport(const LayerResult& layer) {
  const LayerMoments& moments = layer.moments;
  Json json = {{"layer_id", moments.layer_id},
               {"num_q_heads", moments.num_q_heads},
               {"num_kv_heads", moments.num_kv_heads},
               {"head_dim", moments.head_dim},
               {"v_head_dim", moments.v_head_dim},
               {"tokens", moments.tokens},
               {"sides", {{"k", SideReport(layer.k)}, {"v", SideReport(layer.v)}}},
               {"arms", Json::object()}};
  if (layer.k_shared.num_rotations > 0) {
    json["sides"]["k_shared"] = SideReport(layer.k_shared);
    json["sides"]["v_shared"] = SideReport(layer.v_shared);
  }
  if (!layer.clip_candidates.empty()) json["clip_candidates"] = layer.clip_candidates;
  for (const ArmResult& arm : layer.arms) json["arms"][arm.name] = ArmReport(arm);
  return json;
}

Json MakeReport(const Json& header, const std::vector<Json>& layers) {
  const auto largest = [](double a, double b) { return std::max(a, b); };
  const auto smallest = [](double a, double b) { return std::min(a, b); };
  Json summary = {{"layers", layers.size()},
                  {"orthogonality", OverSides(layers, "orthogonality", 0, largest)},
                  {"float32_orthogonality", OverSides(layers, "float32_orthogonality", 0, largest)},
                  {"eigen_residual", OverSides(layers, "eigen_residual", 0, largest)},
                  {"min_relative_gap", OverSides(layers, "min_relative_gap", 1, smallest)},
                  {"arms", Json::object()}};
  for (const Json& layer : layers) {
    for (const auto& [name, arm] : layer.at("arms").items()) {
      Json& mean = summary["arms"][name];
      for (const auto& [key, value] : arm.items()) {
        const double number = value.get<double>();
        const double so_far = mean.contains(key) ? mean[key].get<double>() : 0.0;
        if (key == "kl_max") {
          mean[key] = std::max(so_far, number);
        } else {
          mean[key] = so_far + number / static_cast<double>(layers.size());
        }
      }
    }
  }
  Json report = header;
  report["$schema"] = {{"name", kReportSchema}, {"version", kReportVersion}};
  report["summary"] = summary;
  report["layers"] = layers;
  return report;
}

ReportTable SummaryTable(const Json& report) {
  ReportTable table;
  table.header = {"layer", "orthogonality", "clip K", "clip V"};
  std::vector<std::string> arms;
  for (const char* arm :
       {"naive", "hadamard", "hadamard_clip", "oscar_shared", "oscar_per_head", "auto"}) {
    if (!report.at("summary").at("arms").contains(arm)) continue;
    arms.emplace_back(arm);
    table.header.emplace_back(arm);
  }
  std::vector<double> sums(arms.size()), counts = sums;
  for (const Json& layer : report.at("layers")) {
    const Json& sides = layer.at("sides");
    double orthogonality = 0;
    for (const auto& [name, side] : sides.items()) {
      orthogonality = std::max(orthogonality, side.at("orthogonality").get<double>());
    }
    std::vector<std::string> row = {
        fmt::format("{}", layer.at("layer_id").get<int>()), fmt::format("{:.1e}", orthogonality),
        fmt::format("{:.2f}", sides.at("k").at("clip_ratio").get<double>()),
        fmt::format("{:.2f}", sides.at("v").at("clip_ratio").get<double>())};
    for (size_t i = 0; i < arms.size(); ++i) {
      const Json& arm = layer.at("arms").at(arms[i]);
      const double kl = arm.at("kl_mean_beyond");
      const bool any = arm.at("rows_beyond") != 0;
      row.push_back(any ? fmt::format("{:.5f}", kl) : kNoRows);
      sums[i] += any ? kl : 0;
      counts[i] += any ? 1 : 0;
    }
    table.rows.push_back(row);
  }
  std::vector<std::string> mean = {
      "mean", fmt::format("{:.1e}", report.at("summary").at("orthogonality").get<double>()), "",
      ""};
  for (size_t i = 0; i < arms.size(); ++i)
    mean.push_back(counts[i] > 0 ? fmt::format("{:.5f}", sums[i] / counts[i]) : kNoRows);
  table.rows.push_back(mean);
  return table;
}

ReportTable RuntimesTable(const Json& serving, const std::string& artifact) {
  ReportTable table;
  table.header = {"runtime",     "checkpoint",   "writer",        "attention-KL",
                  "vs Hadamard", "output error", "export command"};
  if (!serving.contains("runtimes")) return table;
  for (const Json& row : serving.at("runtimes")) {
    const std::string runtime = row.at("runtime");
    const std::string_view target = ExportTargetOf(runtime);
    const bool folded = row.at("fold_checkpoint");
    const double kl = row.at("kl"), hadamard = row.at("hadamard_kl");
    const bool headline = row.at("choice") == kHeadlineChoice;
    table.rows.push_back(
        {runtime + (headline ? " *" : ""), folded ? "folded" : "unchanged",
         row.value("error_feedback", false) ? "error feedback" : "as released",
         fmt::format("{:.5f}", kl), hadamard > 0 ? fmt::format("x {:.2f}", kl / hadamard) : "",
         fmt::format("{:.4f}", row.at("output_error").get<double>()),
         target.empty() ? "no exporter yet"
                        : fmt::format("oscar-export {} --to {}{} -o DIRECTORY", artifact, target,
                                      folded ? " --folded" : "")});
  }
  if (artifact.empty()) DropCommands(table);
  return table;
}

ReportTable BudgetsTable(const Json& serving, const std::string& artifact) {
  ReportTable table;
  table.header = {"bits",         "stored",        "code bits",     "attention-KL",
                  "output error", "next-token KL", "export command"};
  if (!serving.contains("budgets")) return table;
  for (const Json& row : serving.at("budgets")) {
    const double bits = row.at("bits");
    std::string token_kl;
    if (row.contains("bits_by")) {
      const Json& by = row.at("bits_by");
      for (const Json& plan : by.at("plans"))
        if (plan.at("by") == by.at("price"))
          token_kl = fmt::format("{:.4f}", plan.at("token_kl").get<double>());
    }
    table.rows.push_back(
        {fmt::format("{:g}", bits), fmt::format("{:.3f}", row.at("bits_stored").get<double>()),
         fmt::format("{:.3f}", row.at("bits_spent").get<double>()),
         fmt::format("{:.5f}", row.at("kl").get<double>()),
         fmt::format("{:.4f}", row.at("output_error").get<double>()), token_kl,
         fmt::format("oscar-export {} --to oscar-torch --bits {:g} -o DIRECTORY", artifact, bits)});
  }
  if (artifact.empty()) DropCommands(table);
  return table;
}

std::string ClipText(const Json& serving) {
  const auto both = [&](const Json& of, const char* suffix) {
    const auto ratio = [&](const char* side) {
      return of.at(fmt::format("{}_clip_ratio{}", side, suffix)).get<double>();
    };
    return fmt::format("K {:.2f}, V {:.2f}", ratio("k"), ratio("v"));
  };
  const std::string own =
      fmt::format("{} (shared rotations: {})", both(serving, ""), both(serving, "_shared"));
  if (!serving.contains("auto")) return "clip ratio " + own;
  const Json& choice = serving.at("auto");
  return fmt::format("clip ratio {}; for OSCAR's own rotations {}",
                     choice.contains("k_clip_ratio") && choice.contains("v_clip_ratio")
                         ? both(choice, "")
                         : "chosen for each layer, in the exported files",
                     own);
}

}  // namespace oscar
