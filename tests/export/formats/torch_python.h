// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads the files that we write in Python, with the torch package (check_torch_load.py), and checks
// them. Skips the test if Python or torch is missing.
#pragma once

#include <optional>
#include <string>

#include "tests/support/test_data.h"  // OSCAR_SKIP_WITHOUT_PACKAGE

namespace oscar {

// Returns the output of "check_torch_load.py <arguments>"; fails the test if it does not exit with
// 0. Returns nothing if there is no Python with torch.
std::optional<std::string> RunTorchCheck(const std::string& arguments);

}  // namespace oscar

#define OSCAR_TORCH_OR_SKIP(output, arguments)                      \
  const auto output##_optional = ::oscar::RunTorchCheck(arguments); \
  if (!output##_optional) OSCAR_SKIP_WITHOUT_PACKAGE("torch");      \
  const std::string output = *output##_optional
