// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a recorded validation with a repeated one, which proves what digests cannot. Anyone can
// edit a report and seal it again, but cannot make the model agree. The caller measures, because
// that needs the model and LibTorch, which this folder does not use.
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

// Makes the configuration that repeats a recorded validation. It is the recorded one with every
// arm, window and type given by name, without a gate and without kernels. Throws InputError naming
// `what` if the report does not contain it.
Json RecordedConfiguration(const Json& validation, std::string_view what);

// Returns the differences between two validations, one per line; empty if there are none. On the
// same machine and program every number of every arm must agree to a relative 1e-6. Other machines
// round differently, so only the metrics that a gate may name are compared: fractions must agree to
// 0.05, and a KL, an error, or the excess of a ratio over 1 to 5 %.
std::vector<std::string> CompareValidations(const Json& recorded, const Json& again);

}  // namespace oscar
