// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The mean of values at positions of sequences, and its bootstrap interval. The bootstrap resamples
// pieces of text, each a sixteenth of a sequence. Trap: heads share the tokens of a row, so (row,
// head) pairs are not independent and must not be resampled.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/evaluate/bootstrap.h"
#include "export/measures/arm.h"

namespace oscar {

class PieceSums {
 public:
  // Adds a value at `position` of a sequence of `length` tokens.
  void Add(int64_t sequence, int64_t position, int64_t length, double value);

  int64_t count() const { return static_cast<int64_t>(total_.weight); }
  double mean() const { return total_.weight > 0 ? total_.sum / total_.weight : 0; }
  // Returns the 95 % interval of the mean, or nothing for fewer than two pieces.
  std::optional<Interval> Bootstrap(int64_t resamples, uint64_t seed) const;
  Json ToJson() const;  // the content of kPieces

 private:
  RatioUnit total_;
  std::map<std::pair<int64_t, int64_t>, RatioUnit> pieces_;  // by sequence and sixteenth of it
};

// The member in which an arm stores the piece sums of a KL until FinishArms (by_domain.h) uses
// them. It is a list of [sequence, sixteenth, sum, number of values].
inline constexpr const char* kPieces = "pieces";

// Returns kReportQuantiles of `samples`, which must not be empty. Does not set the mean.
measures::Distribution QuantilesOf(std::vector<float> samples);

// Returns the mean and interval of `sums` with the quantiles of `samples`.
measures::Distribution KlOf(const PieceSums& sums, std::vector<float> samples, int64_t resamples,
                            uint64_t seed);

}  // namespace oscar
