// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the results of the CUDA kernels on the model's own queries, keys and values: whether they
// store the codec's codes, and the error of their attention in each layer.
#include <fmt/format.h>

#include <limits>
#include <vector>

#include "export/report/html.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr const char* kDifferences[] = {"differing_codes", "differing_metadata",
                                        "differing_simulated"};

// Names the head with the largest value, in red if it is above `limit`.
std::string Largest(const std::vector<Record>& heads, const char* key, double limit) {
  if (heads.empty()) return "";
  size_t worst = 0;
  for (size_t i = 1; i < heads.size(); ++i) {
    if (heads[i][key].Number() > heads[worst][key].Number()) worst = i;
  }
  const std::string html = Value(heads[worst][key], Format::kError);
  return heads[worst][key].Number() <= limit ? html
                                             : fmt::format("<span class=\"fail\">{}</span>", html);
}

// Lists the heads that store wrong values, or returns "0".
std::string Differences(const std::vector<Record>& heads, const char* key) {
  std::string html;
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i][key].Number() == 0) continue;
    html += fmt::format("{}{} in head {}", html.empty() ? "" : ", ",
                        Value(heads[i][key], Format::kCount), i);
  }
  return html.empty() ? "0" : fmt::format("<span class=\"fail\">{}</span>", html);
}

std::string Summary(const Record& kernels) {
  const Record format = kernels["format"];
  return fmt::format(
      "<p>{} tokens of held-out text went through the write kernel of every layer, {} of their "
      "queries through the decode kernel, on {}: keys in {} bits, values in {}, {} values per "
      "scale, scales as {}, {} first and {} recent tokens exact, rotations {}. {} codes were "
      "compared. Relative error of the attention output: {} of the kernel alone, {} in all.</p>\n",
      Value(kernels["tokens"], Format::kCount), Value(kernels["queries"], Format::kCount),
      Html(kernels["gpu"].Text()), Value(format["k_bits"], Format::kCount),
      Value(format["v_bits"], Format::kCount), Value(format["quant_group_size"], Format::kCount),
      Html(format["metadata"].Text()), Value(kernels["sink_tokens"], Format::kCount),
      Value(kernels["recent_tokens"], Format::kCount),
      kernels["rotations"].Text() == "per_head" ? "per KV head" : "shared by the KV heads",
      Value(kernels["codes"], Format::kCount), Value(kernels["kernel_error"], Format::kError),
      Value(kernels["total_error"], Format::kError));
}

}  // namespace

std::string KernelsSection(const Record& report) {
  if (!report.Has("validation") || !report["validation"].Has("kernels")) return {};
  const Record kernels = report["validation"]["kernels"];
  const bool passed = kernels["passed"].True();
  const double limit = kernels["kernel_error_limit"].Number();
  std::vector<TableRow> rows;
  for (const Record& layer : kernels["layers"].Items()) {
    const std::vector<Record> heads = layer["heads"].Items();
    TableRow row{{Value(layer["layer_id"], Format::kCount)}, ""};
    for (const char* key : kDifferences) row.cells.push_back(Differences(heads, key));
    row.cells.push_back(Largest(heads, "kernel_error", limit));
    row.cells.push_back(Largest(heads, "total_error", kNoLimit));
    for (const char* key : {"write_us", "decode_us"})
      row.cells.push_back(Value(layer[key], Format::kBits));
    rows.push_back(std::move(row));
  }
  return fmt::format("<p class=\"verdict {}\"><span aria-hidden=\"true\">{}</span>{}</p>\n",
                     passed ? "pass" : "fail", passed ? "✓" : "✗",
                     passed ? "Kernels passed" : "Kernels failed") +
         Summary(kernels) +
         Note(fmt::format(
             "Differences: codes, then scales and zeros, compared with the scalar codec, and the "
             "values that the simulator of the configurations above reads back, all for the "
             "rotated values that the kernel itself stored in 16 bits. Errors are those of the "
             "worst KV head: the kernel error compares with float64 attention over the same cache "
             "(at most {} is allowed), the total error with float64 attention over the exact keys "
             "and values. Times are for one layer and only show that it ran; use "
             "<code>oscar-bench</code> for benchmarks.",
             Value(kernels["kernel_error_limit"], Format::kError))) +
         Table("Kernels by layer",
               {"layer", "codes that differ", "scales, zeros that differ",
                "values that the simulator reads differently", "kernel error", "total error",
                "write, µs", "decode, µs"},
               rows);
}

}  // namespace oscar
