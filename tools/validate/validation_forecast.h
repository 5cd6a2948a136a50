// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Forecasts the time of each part of a validation on a CPU. It runs the first layer of the
// validation on a short text, and scales its time by the amount of work. It takes the fastest of
// several such probes, because other programs can only make them slower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/artifact/artifact_reader.h"
#include "tools/input/own_words.h"
#include "tools/validate/validate_input.h"

namespace oscar {

struct Forecast {
  struct Part {
    std::string name;
    double seconds = 0;  // on an idle machine; 0: the run has no such part
  };
  std::vector<Part> parts;  // text, own words, recall
  double slowdown = 1;      // time of the probes, relative to an idle machine
  double load = 0;          // average number of runnable processes in the minute before
  int cores = 1;

  bool busy() const;
  // Returns the forecast as text, for example "90 to 150 s: text 80 to 130 s, own words 10 to 20 s,
  // recall none", and whether it is doubtful.
  std::string Text() const;
  Json ToJson() const;  // seconds and their range, in total and for each part
};

// Forecasts a validation. `options`: as passed to ValidateModel. Takes about two seconds, or for a
// large model the time of a few layers on a short text.
Forecast ForecastValidation(const ValidationOptions& options, const Artifact& artifact,
                            const ValidationInput& input, const OwnWordsPlan& own_words,
                            const std::vector<int64_t>& recall_lengths, size_t recall_arms,
                            at::ScalarType dtype);

// Formats a range like "90 to 150 s", "4 to 7 min", "170 s to 5 min".
std::string RangeText(double from, double to);

}  // namespace oscar
