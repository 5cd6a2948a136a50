// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON as a value of a template. Trap: templates print dicts in the order of the file, so keep it.
#pragma once

#include <string_view>

#include "capture/text/template/value.h"

namespace oscar::jinja {

// Throws InputError naming `what`.
Value ParseJsonValue(std::string_view text, std::string_view what);

}  // namespace oscar::jinja
