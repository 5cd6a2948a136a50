// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens that are held out to judge clipping and attention errors. Rotations are judged after a
// fit without these tokens; the published rotations are then refitted on all tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "calib/options.h"

namespace oscar {

// Per sequence, one value per token: 0 if the token's query does not count (loss_mask or labels in
// the data). Such a query enters no statistic and no score, but the token's key and value do.
// Empty: all count.
using CountedQueries = std::vector<std::vector<uint8_t>>;

// Return the rows in [begin, end) of a sequence whose queries count, and how many there are.
std::vector<int64_t> CountedRows(const CountedQueries& counted, size_t sequence, int64_t begin,
                                 int64_t end);
int64_t NumCounted(const CountedQueries& counted, size_t sequence, int64_t begin, int64_t end);

enum class HeldOutKind { kNone, kDomains, kDocuments, kTailRows };
std::string_view HeldOutKindName(HeldOutKind kind);  // "none", "domains", "documents", "tail rows"

struct HeldOutSplit {
  HeldOutKind kind = HeldOutKind::kNone;
  // Per sequence: fits use rows [0, fit_rows[i]), the rest is held out.
  std::vector<int64_t> fit_rows;
  int64_t held_out_tokens = 0;
  CountedQueries counted = {};

  // Returns null if all queries of a sequence count.
  const std::vector<uint8_t>* CountedOf(size_t sequence) const;
  // Return how many queries count in the fitted rows and in the held-out rows.
  int64_t NumFitQueries() const;
  int64_t NumHeldOutQueries() const;
  // Returns how many held-out query rows are kept of a sequence with `tokens` tokens: at most
  // `error_rows` (CalibrationOptions::error_rows).
  int64_t NumKeptRows(size_t sequence, int64_t tokens, int64_t error_rows) const;
};

// Holds out every third domain as a whole, so that fits are judged on other kinds of text. Domains
// are in the order of their first sequences; `domains` has a number for each sequence. With fewer
// than two domains, nothing is held out (kNone).
HeldOutSplit SplitByDomain(const std::vector<int64_t>& sequence_lengths,
                           const std::vector<int32_t>& domains);

// Holds out whole documents if there are enough of them: every round(1/share)-th, from the first
// on. If that leaves nothing to judge or less than two thirds to fit (few or very unequal
// documents), holds out the last `share` of every sequence's rows instead. Shares refer to queries
// that count. Requires 0 <= share <= 0.5; with 0, nothing is held out. Deterministic.
HeldOutSplit SplitHeldOut(const std::vector<int64_t>& sequence_lengths, double share,
                          CountedQueries counted = {});

// Returns the share on which automatic choices are judged: `share`, or the share of a quarter of
// the documents (at most three) if that is larger. With the last rows of every document, transforms
// with many degrees of freedom would look too good, because they were fitted to the other rows of
// the same documents.
double ShareOfDocuments(size_t num_sequences, double share);

// Returns the split for a calibration: by domain if there are several domains and the calibration
// makes automatic choices (`chooses`), otherwise by documents. Empty `domains`: unknown.
HeldOutSplit SplitOf(const std::vector<int64_t>& sequence_lengths,
                     const std::vector<int32_t>& domains, double share, bool chooses,
                     CountedQueries counted = {});

}  // namespace oscar
