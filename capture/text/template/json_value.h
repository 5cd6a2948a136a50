// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON as a value of a template. Trap: dicts keep the file's order, because templates print them in
// that order.
#pragma once

#include <string_view>

#include "capture/text/template/value.h"

namespace oscar::jinja {

// Throws InputError naming `what`.
Value ParseJsonValue(std::string_view text, std::string_view what);

}  // namespace oscar::jinja
