// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Determines the kind of a row of a JSON file from its columns, as data_rows.h describes. A null
// column counts as missing, because a table that is exported by a schema has all columns in every
// row.
#pragma once

#include <string>

#include "capture/text/data/data_rows.h"

namespace oscar {

// Sets row.value, or leaves it empty if all columns that determine the kind are null. Throws
// InputError naming row.where, what was expected and what was found.
void ParseRow(const jinja::Value& object, DataRow& row);

}  // namespace oscar
