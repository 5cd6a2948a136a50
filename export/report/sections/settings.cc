// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows all other members of the record about its origin, so that no information is only in the
// JSON.
#include <fmt/format.h>

#include "export/report/html.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

constexpr size_t kMaxRows = 400;         // rows per list: a model may have hundreds of shards
constexpr size_t kMaxCharacters = 2000;  // characters per value

std::string Shown(const Record& value) {
  if (value.IsString()) return HtmlCut(value.Text(), kMaxCharacters);
  return fmt::format("<code>{}</code>", HtmlCut(value.Text(), kMaxCharacters));
}

// Formats a file digest on one line.
bool IsDigest(const Record& value) {
  return value.IsObject() && value.size() == 2 && value.IsText("sha256") && value.IsNumber("size");
}

void AddRows(const std::string& name, const Record& value, size_t& rows, std::string& html) {
  if (rows == kMaxRows) {
    html += "<dt>…</dt><dd>report.json has the rest</dd>\n";
    ++rows;
  }
  if (rows > kMaxRows) return;
  if (value.IsObject() && value.size() > 0 && !IsDigest(value)) {
    for (const auto& [key, member] : value.Members())
      AddRows(name.empty() ? key : name + "." + key, member, rows, html);
    return;
  }
  ++rows;
  html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Html(name),
                      IsDigest(value)
                          ? fmt::format("<code>{}</code>, {} bytes", Html(value["sha256"].Text()),
                                        Value(value["size"], Format::kCount))
                          : Shown(value));
}

std::string ValueList(const char* heading, const Record& value) {
  std::string html;
  size_t rows = 0;
  AddRows("", value, rows, html);
  if (html.empty()) return {};
  return fmt::format("<details><summary>{}</summary><dl>\n{}</dl></details>\n", heading, html);
}

}  // namespace

std::string SettingsSection(const Record& report) {
  std::string html;
  if (report.Has("validation")) {
    const Record validation = report["validation"];
    html += ValueList("Validation: settings", validation["settings"]);
    html += ValueList("Validation: data", validation["data"]);
    html += ValueList("Validation: rotations", validation["rotations"]);
    if (validation.Has("model")) html += ValueList("Validation: model", validation["model"]);
    html += ValueList("Validation: program", validation["program"]);
    html += ValueList("Validation: machine", validation["machine"]);
  }
  html += ValueList("Calibration", report["calibration"]);
  html += ValueList("Calibration: data", report["data"]);
  html += ValueList("Recommended for serving", report["serving"]);
  return html + ValueList("Model", report["model"]);
}

}  // namespace oscar
