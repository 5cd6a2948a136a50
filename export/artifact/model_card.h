// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The README.md of an artifact: a model card with front matter, made only from the report.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

std::string ModelCard(const Json& report);

}  // namespace oscar
