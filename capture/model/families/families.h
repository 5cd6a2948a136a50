// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of model families. A family is one file of about a screen that maps config fields and
// tensor names onto ModelSpec, declared and listed in families.cc. Trap: what a family does not
// read is judged by config_fields.h.
#pragma once

#include <span>
#include <string_view>

#include "capture/model/config_reader.h"
#include "capture/model/model_spec.h"

namespace oscar {

struct Family {
  std::string_view model_type;    // as in config.json
  std::string_view architecture;  // class name in "architectures"
  ModelSpec (*read)(ConfigReader& config);
};

std::span<const Family> Families();  // sorted by model_type

}  // namespace oscar
