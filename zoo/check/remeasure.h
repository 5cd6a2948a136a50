// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a recorded validation with a repeated one. Digests cannot show that the figures are
// real: anyone can edit a report and seal it again. Repeating the validation can. The caller
// repeats it, because that needs the model and LibTorch, which this folder does not use.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// Runs oscar-validate on the artifact with this configuration and returns the report.
using MeasureFunction =
    std::function<Json(const std::filesystem::path& artifact, const Json& configuration)>;

// Returns the configuration that repeats a recorded validation. Its arms, window sizes and dtype
// are given explicitly, so that no default can change them. The gate and the kernel check are left
// out. Throws InputError naming `what` if the report contains no configuration.
Json RecordedConfiguration(const Json& validation, std::string_view what);

// Returns the differences between two validations, one per line; empty if there are none. On the
// same machine and program, all numbers of every arm must agree to a relative 1e-6. Other machines
// round differently, so only the metrics that a gate may name are compared. Fractions must agree to
// 0.05. A KL or an error must agree to 5 %, and so must the excess of a perplexity ratio over 1.
std::vector<std::string> CompareValidations(const Json& recorded, const Json& again);

}  // namespace oscar
