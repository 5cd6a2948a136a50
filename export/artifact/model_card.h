// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// README.md of an artifact: a model card with front matter, made from the report alone.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

std::string ModelCard(const Json& report);

}  // namespace oscar
