// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a row of a JSON file is, by its columns; data_rows.h says which. A column that is null
// counts as not there, since tables exported from one schema carry all its columns.
#pragma once

#include <string>

#include "capture/text/data_rows.h"

namespace oscar {

// Sets row.value; to nothing where the columns that say what a row is are null. Throws InputError
// naming row.where: what was expected, what was found.
void ParseRow(const jinja::Value& object, DataRow& row);

}  // namespace oscar
