// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/report_page.h"

#include <fmt/format.h>

#include "export/report/report_schema.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

struct Section {
  const char* id;
  const char* short_name;  // for the list of sections
  const char* heading;
  std::string (*render)(const Record& report);
};

constexpr Section kSections[] = {
    {"provenance", "Provenance", "What was measured", ProvenanceSection},
    {"bits", "Bits", "Cost at each number of bits", BudgetsSection},
    {"methods", "Methods", "Memory and error of the methods", MethodsSection},
    {"arms", "Configurations", "Ways to store the cache", ArmsSection},
    {"context", "Context length", "Error against context length", ContextSection},
    {"domains", "Domains", "Kinds of text", DomainsSection},
    {"heads", "Layers and heads", "Error by layer and head", HeadsSection},
    {"split", "Keys, values", "Keys or values", SplitSection},
    {"needle", "Needle", "Needle in a haystack", NeedleSection},
    {"tool-calls", "Tool calls", "Tool calls", ToolCallSection},
    {"memory", "Memory", "Memory", MemorySection},
    {"kernels", "Kernels", "Kernels on this model", KernelsSection},
    {"layer-error", "Calibration", "Calibration: error by layer", LayerErrorSection},
    {"choice", "Choice", "Calibration: automatic choice", ChoiceSection},
    {"cache-types", "Types", "Calibration: types of 8 and 4 bits", CacheTypesSection},
    {"clip", "Clipping", "Calibration: clipping", ClipSection},
    {"spectra", "Importance", "Calibration: importance", SpectraSection},
    {"layers", "Invariants", "Calibration: invariants", LayersSection},
    {"settings", "Settings", "Settings and digests", SettingsSection},
};

}  // namespace

std::vector<PageSection> ReportSections(const JsonElement& report) {
  CheckReport(report, "report");
  const Record record(report);
  std::vector<PageSection> sections;
  for (const Section& section : kSections)
    sections.push_back({section.id, section.short_name, section.heading, section.render(record)});
  return sections;
}

std::string ReportPage(const Json& report) {
  const JsonText text(report, "report");
  const std::vector<PageSection> sections = ReportSections(text.root());
  const Record record(text.root());
  return RenderPage(record["model"].TextOr("id", "unknown model"), VerdictSection(record), sections,
                    fmt::format("Schema {} version {}. Every number is printed from report.json; "
                                "the page's source has its exact value and its place there.",
                                kReportSchema, record["$schema"]["version"].Text()));
}

}  // namespace oscar
