// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mutations of the configuration of each model of tests/data/families: each changes a field that
// must either change the values or be refused. A mutation that changes nothing means that nobody
// reads the field.
#pragma once

#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

struct Mutation {
  const char* family;  // folder
  const char* field;   // JSON pointer in config.json
  Json value;
};

const std::vector<Mutation>& Mutations();

}  // namespace oscar
