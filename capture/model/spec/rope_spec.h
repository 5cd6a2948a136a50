// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embeddings as data: which dimensions rotate, and how fast. Some depend on the
// sequence length (dynamic, longrope), so frequencies take a length. Source: transformers 5,
// modeling_rope_utils.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oscar {

enum class RopeKind {
  kDefault,
  kLinear,
  kLlama3,
  kDynamic,       // theta grows with sequences longer than original_max_positions
  kYarn,          // arXiv 2309.00071
  kLongRope,      // arXiv 2402.13753: a factor for each pair, with one list for short sequences and
                  // one for long
  kProportional,  // the first turning_pairs of a whole head rotate, the rest do not
  kNone,          // no rotary embedding at all
};

// The two dimensions of the rotary part that form one complex number.
enum class RopeLayout {
  kHalf,         // i and i + rotary_dim / 2
  kInterleaved,  // 2i and 2i + 1
};

struct RopeSpec {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000.0;         // base of the geometric series of frequencies
  double factor = 1.0;            // how much slower the (low) frequencies rotate
  double low_freq_factor = 1.0;   // kLlama3: wavelengths above original / this slow by `factor`
  double high_freq_factor = 4.0;  // kLlama3: wavelengths below original / this do not change
  int64_t original_max_positions = 0;  // context length before scaling, in tokens
  int64_t rotary_dim = 0;              // leading dimensions of a head that rotate; even
  RopeLayout layout = RopeLayout::kHalf;
  double attention_factor = 1.0;             // factor on cosines and sines
  double beta_fast = 32.0, beta_slow = 1.0;  // kYarn: rotations within the original context; pairs
                                             // above beta_fast keep their frequency, pairs
                                             // below beta_slow are slowed by `factor`
  bool truncate = true;                      // kYarn: rounds the range in between to whole pairs
  int64_t turning_pairs = 0;                 // for kProportional
  int64_t first_position = 0;                // position of a sequence's first token
  std::vector<double> short_factor = {}, long_factor = {};  // for kLongRope  // [rotary_dim / 2]
  bool operator==(const RopeSpec&) const = default;
};

// Number of pairs in the rotary part of a head. It includes the pairs of kProportional that do not
// rotate, and is 0 for kNone.
int64_t NumPairs(const RopeSpec& rope);

// The two dimensions of pair i.
struct RopePair {
  int64_t first = 0, second = 0;
};
RopePair PairOf(const RopeSpec& rope, int64_t i);

// Sequences of the same class have the same frequencies. The class is 0 except for the long
// sequences of kDynamic and kLongRope.
int64_t LengthClass(const RopeSpec& rope, int64_t sequence_length);

// Returns the frequency of each pair, in radians per token, for a sequence length.
// -> [NumPairs]
std::vector<double> InverseFrequencies(const RopeSpec& rope, int64_t sequence_length = 0);

// Describes the effective settings: "default theta=1e+06", "llama3 theta=500000 factor=8 low=1
// high=4 original=8192".
std::string DescribeRope(const RopeSpec& rope);

}  // namespace oscar
