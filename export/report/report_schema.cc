// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/report_schema.h"

#include <fmt/format.h>

#include "export/measures/outline.h"
#include "export/measures/report.h"
#include "linalg/base/error.h"

namespace oscar {

std::string ReportMembers() { return measures::Outline::Of<measures::Report>(); }

void CheckReport(const Json& report, std::string_view what) {
  CheckReport(JsonText(report, what).root(), what);
}

void CheckReport(const JsonElement& report, std::string_view what) {
  std::string_view name;
  if (report["$schema"]["name"].get(name) != simdjson::SUCCESS || name != kReportSchema) {
    throw InputError(
        fmt::format("{}: not a report; expected \"$schema\": {{\"name\": \"{}\", \"version\": {}}}",
                    what, kReportSchema, kReportVersion));
  }
  const measures::Spot root{report, what};
  measures::SchemaName schema;
  Read(measures::Spot{report["$schema"].value(), what, &root, "$schema"}, schema);
  if (schema.version < 1 || schema.version > kReportVersion) {
    root.Refuse(
        fmt::format("this program reads versions 1 to {}, found {}; try a newer version of oscar",
                    kReportVersion, schema.version),
        "/$schema/version");
  }
  measures::Report document;
  Read(root, document);
  if (schema.version < 2 && document.validation)
    root.Refuse("version 1 has no such member; version 2 does", "/validation");
}

}  // namespace oscar
