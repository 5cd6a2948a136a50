// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the invariants of every layer's rotations, in float64 and after the cast to float32.
#include <fmt/format.h>

#include <tuple>

#include "export/report/html.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

constexpr struct {
  const char* heading;
  const char* key;
  Format format;
} kSideColumns[] = {{"clip", "clip_ratio", Format::kBits},
                    {"orthogonality", "orthogonality", Format::kInvariant},
                    {"float32", "float32_orthogonality", Format::kInvariant},
                    {"eigen-residual", "eigen_residual", Format::kInvariant},
                    {"smallest gap", "min_relative_gap", Format::kInvariant},
                    {"largest / mean importance", "importance_max_over_mean", Format::kPerplexity}};

std::string LayersTable(const Record& layers) {
  std::vector<std::string> header = {"layer", "KV heads", "dim", "tokens"};
  for (const auto& column : kSideColumns) header.emplace_back(column.heading);
  std::vector<TableRow> rows;
  for (const Record& layer : layers.Items()) {
    for (const auto& [side, name, heads, dim] :
         {std::tuple("k", "keys", "num_kv_heads", "head_dim"),
          std::tuple("v", "values", "num_kv_heads", "v_head_dim")}) {
      TableRow row{{Value(layer["layer_id"], Format::kCount) + ", " + name,
                    Value(layer[heads], Format::kCount), Value(layer[dim], Format::kCount),
                    Value(layer["tokens"], Format::kCount)},
                   ""};
      for (const auto& column : kSideColumns)
        row.cells.push_back(Value(layer["sides"][side][column.key], column.format));
      rows.push_back(std::move(row));
    }
  }
  return Table("Layers", header, rows);
}

}  // namespace

std::string LayersSection(const Record& report) {
  const Record summary = report["summary"], layers = report["layers"];
  if (layers.size() == 0) return {};
  std::string html = fmt::format(
      "<p>Worst over all layers: max|RᵀR − I| {} in float64 and {} as float32; eigen-residual "
      "‖AV − VΛ‖/‖A‖ {}; smallest relative gap of neighbouring eigenvalues {}.</p>\n",
      Value(summary["orthogonality"], Format::kInvariant),
      Value(summary["float32_orthogonality"], Format::kInvariant),
      Value(summary["eigen_residual"], Format::kInvariant),
      Value(summary["min_relative_gap"], Format::kInvariant));
  constexpr size_t kShownAtOnce = 12;
  const std::string table = LayersTable(layers);
  if (layers.size() <= kShownAtOnce) return html + table;
  return html + fmt::format("<details><summary>All {} layers</summary>\n{}</details>\n",
                            layers.size(), table);
}

}  // namespace oscar
