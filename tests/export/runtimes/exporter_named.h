// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "export/runtimes/exporter.h"

namespace oscar {

// The row of AllExporters() that --to names so.
inline const Exporter& ExporterNamed(std::string_view name) {
  const auto row = std::ranges::find(AllExporters(), name, &Exporter::name);
  if (row == AllExporters().end()) throw std::logic_error("no exporter " + std::string(name));
  return *row;
}

}  // namespace oscar
