// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See report_page.h.
#include "export/report/report_page.h"

#include <fmt/format.h>

#include "export/report/html.h"
#include "export/report/page_style.h"
#include "export/report/report_schema.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

struct Section {
  const char* id;
  const char* short_name;  // in the list of sections
  const char* heading;
  std::string (*render)(const Record& report);
};

constexpr Section kSections[] = {
    {"provenance", "Provenance", "What was measured", ProvenanceSection},
    {"arms", "Arms", "Ways to store the cache", ArmsSection},
    {"context", "Context length", "Error against context length", ContextSection},
    {"heads", "Layers and heads", "Where in the model", HeadsSection},
    {"split", "Keys, values", "Keys or values", SplitSection},
    {"needle", "Needle", "Needle in a haystack", NeedleSection},
    {"memory", "Memory", "Memory", MemorySection},
    {"kernels", "Kernels", "Kernels on this model", KernelsSection},
    {"layer-error", "Calibration", "Calibration: error by layer", LayerErrorSection},
    {"clip", "Clipping", "Calibration: clipping", ClipSection},
    {"spectra", "Importance", "Calibration: importance", SpectraSection},
    {"layers", "Invariants", "Calibration: invariants", LayersSection},
    {"settings", "Settings", "Settings and digests", SettingsSection},
};

}  // namespace

std::string ReportPage(const Json& report) {
  CheckReport(report, "report");
  const Record record(report);
  std::string navigation, body;
  for (const Section& section : kSections) {
    const std::string content = section.render(record);
    if (content.empty()) continue;
    navigation += fmt::format("<a href=\"#{}\">{}</a>\n", section.id, section.short_name);
    body += fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-h\"><h2 id=\"{0}-h\">{1}</h2>\n",
                        section.id, section.heading);
    body += content + "</section>\n";
  }
  // The policy is a second lock: whatever a record holds, the page loads and runs nothing.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{} · oscar report</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<header>\n{}</header>\n<nav aria-label=\"Sections\">\n{}</nav>\n<main>\n{}</main>\n"
      "<footer>Schema {} version {}. Every number is printed from report.json; its exact value and "
      "its place there stand in the page's source.</footer>\n</body>\n</html>\n",
      Html(record["model"].TextOr("id", "unknown model")), PageStyle(), VerdictSection(record),
      navigation, body, kReportSchema, record["$schema"]["version"].Text());
}

}  // namespace oscar
