// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mutations of the configuration of each model in tests/data/families. Each changes one field,
// which must either change the values or be refused; otherwise nothing reads that field.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// Returns, by folder name, lists of [JSON pointer in config.json, its new value].
const Json& Mutations();

}  // namespace oscar
