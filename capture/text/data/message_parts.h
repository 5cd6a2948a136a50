// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages whose content is a list of parts, {"type": "text", "text": ...}, for templates that only
// support strings.
#pragma once

#include <string>

#include "capture/text/data/data_rows.h"

namespace oscar {

bool HasParts(const jinja::Value& messages);
// Joins the texts of each list without separators. Throws InputError naming `where` for a part that
// is not text.
jinja::Value WithJoinedParts(const jinja::Value& messages, const std::string& where);

}  // namespace oscar
