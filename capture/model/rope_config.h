// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotary settings out of config.json, in both spellings: rope_theta + rope_scaling (original
// releases) and rope_parameters (transformers 5). Trap: files may hold both; then they must say the
// same.
#pragma once

#include "capture/model/config_reader.h"
#include "capture/model/rope_spec.h"

namespace oscar {

// `default_theta`: for families whose releases may leave it out; nothing: a missing theta is an
// error. InputError for a type or setting that is not implemented, naming it and what is supported.
RopeSpec ReadRope(ConfigReader& config, int64_t head_dim, std::optional<double> default_theta);

}  // namespace oscar
