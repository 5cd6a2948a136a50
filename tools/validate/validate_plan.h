// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes a validation before it runs: the output of --dry-run and --show-samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/model/run/attention_source.h"
#include "tools/input/own_words.h"
#include "tools/validate/validate_input.h"
#include "tools/validate/validate_options.h"
#include "tools/validate/validation_forecast.h"

namespace oscar {

std::string DumpPlanText(const DumpSource& source, const Artifact& artifact,
                         const ValidationOptions& options);
std::string PlanText(const ValidateOptions& options, const Artifact& artifact,
                     const ValidationInput& input, const OwnWordsPlan& own_words,
                     const std::optional<Forecast>& forecast);
std::string ShowNeedles(const char* kind, const std::vector<NeedleSample>& needles, int64_t count);
// Returns the bytes of the hidden states of all arms in float32.
uint64_t HiddenBytes(const ValidateOptions& options, const Artifact& artifact,
                     const ValidationInput& input);
// Forecasts the time. Returns nothing on a GPU, where probes would mostly measure its startup.
std::optional<Forecast> ForecastOf(const ValidateOptions& options, const Artifact& artifact,
                                   const ValidationInput& input, const OwnWordsPlan& own_words,
                                   at::Device device, at::ScalarType dtype);

}  // namespace oscar
