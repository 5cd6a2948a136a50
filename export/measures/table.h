// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers by which arms are compared, one table row for each. They are the metrics of --gate
// and the columns of the tables of arms: on the page, on terminals, in the model card and in CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// How a kind of number is printed everywhere. A zero is "0".
enum class Format {
  kError,       // KL in nats, relative errors: 0.0391, 0.00253, below 0.001 like 3.2e-05
  kPerplexity,  // perplexities and their ratios: 2.4715
  kPercent,     // a fraction: 97.0 %
  kBits,        // bits per element, clip ratios: 2.38
  kCount,       // with thin spaces: 18 420
  kInvariant,   // like 3.1e-15
  kGigabytes,   // from bytes: 1.21 GB
};

// The places where a number appears. CSV has all numbers.
enum MeasurePlace : unsigned {
  kGate = 1,        // --gate, and entries of a zoo
  kPage = 2,        // the table of all arms in report.html
  kSmallPrint = 4,  // its interval also appears in report.html
  kTerminal = 8,    // the table of all arms on a terminal
  kLoss = 16,       // the member `ideal` of a simulated runtime
  kInterval = 32,   // its interval is in CSV
  kLmEval = 64,     // results of lm-evaluation-harness, in addition to perplexities
};

struct Measure {
  std::string_view name;  // in --gate, `ideal` and CSV
  std::string_view path;  // path within an arm: "local.kl.mean"
  std::string_view heading;
  Format format;
  unsigned places;
  std::string_view meaning;  // one line on what --gate takes

  bool Is(MeasurePlace place) const { return (places & place) != 0; }
  std::string_view loss_name() const { return name == "e2e_kl" ? "end_to_end_kl" : name; }
  std::string interval() const;                                             // path of its interval
  std::string_view part() const { return path.substr(0, path.find('.')); }  // the member of an arm
};
// Returns the rows for all numbers, or for those that appear in one of `places`.
std::vector<Measure> Measures(unsigned places = ~0U);
const Measure& MeasureNamed(std::string_view name);

// Returns the value at a dotted path; null if it is missing.
const Json* FindAt(const Json& arm, std::string_view path);
// Returns a number as terminals and model cards show it; empty if it is missing.
std::string TextOf(const Measure& measure, const Json& arm);

// Returns the member `ideal` of an arm that simulates a serving runtime: the name of its ideal arm
// as "arm", and the difference runtime - ideal of every number that both arms have. The differences
// are stored, because the page prints numbers and never computes them. CheckReport compares them
// with both arms.
Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm);

}  // namespace oscar
