// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The sections of the page. Each is a function that makes markup from the record, or returns an
// empty string if the record lacks its data. A table in report_page.cc sets their order. A new
// section needs a file in sections/, an entry in CMakeLists.txt, a declaration below and a row in
// that table.
#pragma once

#include <string>

#include "export/report/record.h"

namespace oscar {

// Describes the exported clip ratios of keys and values: one pair for all layers, or a note that
// each layer has its own. `serving`: the report's member.
std::string ExportedClip(const Record& serving);

std::string VerdictSection(const Record& report);
std::string ProvenanceSection(const Record& report);
std::string MethodsSection(const Record& report);
std::string BudgetsSection(const Record& report);
std::string ArmsSection(const Record& report);
std::string ContextSection(const Record& report);
std::string DomainsSection(const Record& report);
std::string HeadsSection(const Record& report);
std::string SplitSection(const Record& report);
std::string NeedleSection(const Record& report);
std::string ToolCallSection(const Record& report);
std::string MemorySection(const Record& report);
std::string KernelsSection(const Record& report);
std::string LayerErrorSection(const Record& report);
std::string ChoiceSection(const Record& report);
std::string CacheTypesSection(const Record& report);
std::string ClipSection(const Record& report);
std::string SpectraSection(const Record& report);
std::string LayersSection(const Record& report);
std::string SettingsSection(const Record& report);

}  // namespace oscar
