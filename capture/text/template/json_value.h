// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON as a value of a template. Trap: templates print dicts in the order of the file, so this does
// not go through Json (strict_json.h), which sorts keys; it is as strict.
#pragma once

#include <string_view>

#include "capture/files/strict_json.h"
#include "capture/text/template/value.h"

namespace oscar::jinja {

// Throws InputError naming `what`.
Value ParseJsonValue(std::string_view text, std::string_view what);
// Keys in the order of `json`, which is alphabetical.
Value FromJson(const Json& json);

}  // namespace oscar::jinja
