// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A hint at rotations that exist: whether the zoo of OSCAR_ZOO holds some for a model.
#pragma once

#include <string>

namespace oscar {

// A sentence with the command that pulls it; "" without OSCAR_ZOO, or if nothing fits. A zoo that
// cannot be read is said and is no error: what was asked for is a calibration.
std::string ZooHint(const std::string& model);

}  // namespace oscar
