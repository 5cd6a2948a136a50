// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mutations of the configuration of each model of tests/data/families: each changes a field that
// must either change the values or be refused. A mutation that changes nothing means that nobody
// reads the field.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// By folder: lists of [JSON pointer in config.json, its new value].
const Json& Mutations();

}  // namespace oscar
