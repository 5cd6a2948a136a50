// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the error of the headline arm (the one that the page judges) by layer and KV head.
#include <fmt/format.h>

#include <algorithm>

#include "export/report/arm_look.h"
#include "export/report/axis.h"
#include "export/report/heat_map.h"
#include "export/report/html.h"
#include "export/report/sections.h"
#include "export/report/svg.h"

namespace oscar {
namespace {

void AddValues(const Record& heads, Range& range) {
  for (const Record& layer : heads["kl"].Items()) {
    for (const Record& value : layer.Items()) range.Add(value.Number());
  }
}

std::string Worst(const Record& metrics, std::string_view how) {
  const Record worst = metrics["worst"];
  return fmt::format("{} layer {}, KV head {}, with {} nats", how,
                     Value(worst["layer_id"], Format::kCount),
                     Value(worst["kv_head"], Format::kCount), Value(worst["kl"], Format::kError));
}

}  // namespace

std::string HeadsSection(const Record& report) {
  if (!report.Has("validation")) return {};
  const std::vector<ArmLook> arms = LookOfArms(report["validation"]);
  const ArmLook& headline = HeadlineOf(arms);
  const Record local = headline.arm["local"];
  Range range(Scale::kLog);
  AddValues(local["heads"], range);
  if (headline.arm.Has("end_to_end")) AddValues(headline.arm["end_to_end"]["heads"], range);
  const auto map = [&](const Record& metrics, const char* id, const char* title) {
    const Record heads = metrics["heads"];
    return RenderHeatMap({id, title, "",
                          "Attention-KL of each layer and KV head; darker or brighter is larger.",
                          heads["layer_ids"], heads["kl"], range.empty() ? 0 : range.lo(),
                          range.empty() ? 0 : range.hi()});
  };
  std::string figures = map(local, "heads-local", "At the unquantized model's inputs");
  std::string worst = Worst(local, "Worst:");
  if (headline.arm.Has("end_to_end")) {
    figures += map(headline.arm["end_to_end"], "heads-carried", "End to end");
    worst += Worst(headline.arm["end_to_end"], "; end to end");
  }
  if (figures.empty()) return {};
  return fmt::format("<p>Attention-KL of {}, nats. {}.</p>\n", Html(headline.label), worst) +
         FigureRow(figures);
}

}  // namespace oscar
