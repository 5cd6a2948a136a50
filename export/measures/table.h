// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers by which arms are compared, a row for each: what --gate may demand, and the columns
// of every table of arms, of the model card and of CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// How a kind of number is printed, everywhere on the page. A zero is "0".
enum class Format {
  kError,       // KL in nats, relative errors: 0.0391, 0.00253, below 0.001 3.2e-05
  kPerplexity,  // 2.4715, ratios too
  kPercent,     // a fraction: 97.0 %
  kBits,        // bits per element, clip ratios: 2.38
  kCount,       // 18 420, thin spaces
  kInvariant,   // 3.1e-15
  kGigabytes,   // bytes: 1.21 GB
};

// The places where a measure appears. CSV has all measures.
enum MeasurePlace : unsigned {
  kGate = 1,        // --gate, and what a zoo says of an entry
  kPage = 2,        // the table of all arms in report.html
  kSmallPrint = 4,  // its interval appears there too
  kTerminal = 8,    // the table of all arms on a terminal
  kLoss = 16,       // the member `ideal` of a simulated runtime
  kInterval = 32,   // CSV has its interval
};

struct Measure {
  std::string_view name;  // in --gate, `ideal` and CSV
  std::string_view path;  // in an arm: "local.kl.mean"
  std::string_view heading;
  Format format;
  unsigned places;
  std::string_view meaning;  // of what --gate takes, one line

  bool Is(MeasurePlace place) const { return (places & place) != 0; }
  std::string_view loss_name() const { return name == "e2e_kl" ? "end_to_end_kl" : name; }
  std::string interval() const;  // the path of its interval
  std::string_view part() const { return path.substr(0, path.find('.')); }  // member of an arm
};
// All measures, or those that appear in one of `places`.
std::vector<Measure> Measures(unsigned places = ~0U);
const Measure& MeasureNamed(std::string_view name);

// Returns the value at a dotted path, null where it is missing.
const Json* FindAt(const Json& arm, std::string_view path);
// Returns a number as terminals and model cards show it, nothing where it is missing.
std::string TextOf(const Measure& measure, const Json& arm);

// Returns the member `ideal` of an arm that simulates a serving runtime: the ideal's name as "arm",
// and the difference runtime - ideal of every number that both arms have. The record has the
// differences because the page prints numbers and never computes them. CheckReport checks them
// against both arms.
Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm);

}  // namespace oscar
