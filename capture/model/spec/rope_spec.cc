// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/rope_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "linalg/base/check.h"

namespace oscar {
namespace {

bool IsLong(const RopeSpec& rope, int64_t sequence_length) {
  return sequence_length > rope.original_max_positions;
}

// Equals _compute_llama3_parameters of transformers 5. Wavelengths are in tokens.
double Llama3Frequency(const RopeSpec& rope, double frequency) {
  const double original = static_cast<double>(rope.original_max_positions);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  if (rope.high_freq_factor == rope.low_freq_factor) return frequency;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// Equals _compute_dynamic_ntk_parameters of transformers 5: the base for a sequence length.
double DynamicTheta(const RopeSpec& rope, int64_t sequence_length) {
  const double dim = static_cast<double>(rope.rotary_dim);
  const double stretch =
      static_cast<double>(std::max(sequence_length, rope.original_max_positions)) /
      static_cast<double>(rope.original_max_positions);
  return rope.theta * std::pow(rope.factor * stretch - (rope.factor - 1), dim / (dim - 2));
}

// How much the rotation of pair i is slowed, from 0 (unchanged) to 1 (by the whole factor). Source:
// arXiv 2309.00071, section 3.2; transformers 5, _compute_yarn_parameters.
class YarnRamp {
 public:
  explicit YarnRamp(const RopeSpec& rope) {
    const double dim = static_cast<double>(rope.rotary_dim);
    const auto pair_of = [&](double rotations) {
      return dim *
             std::log(static_cast<double>(rope.original_max_positions) /
                      (rotations * 2 * std::numbers::pi)) /
             (2 * std::log(rope.theta));
    };
    low_ = pair_of(rope.beta_fast);
    high_ = pair_of(rope.beta_slow);
    if (rope.truncate) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    }
    low_ = std::max(low_, 0.0);
    high_ = std::min(high_, dim - 1);
    if (low_ == high_) high_ += 0.001;
  }
  double operator()(size_t pair) const {
    return std::clamp((static_cast<double>(pair) - low_) / (high_ - low_), 0.0, 1.0);
  }

 private:
  double low_, high_;
};

}  // namespace

int64_t NumPairs(const RopeSpec& rope) {
  return rope.kind == RopeKind::kNone ? 0 : rope.rotary_dim / 2;
}

RopePair PairOf(const RopeSpec& rope, int64_t i) {
  if (rope.layout == RopeLayout::kInterleaved) return {2 * i, 2 * i + 1};
  return {i, i + rope.rotary_dim / 2};
}

int64_t LengthClass(const RopeSpec& rope, int64_t sequence_length) {
  if (rope.kind == RopeKind::kDynamic && IsLong(rope, sequence_length)) return sequence_length;
  if (rope.kind == RopeKind::kLongRope && IsLong(rope, sequence_length)) return 1;
  return 0;
}

std::vector<double> InverseFrequencies(const RopeSpec& rope, int64_t sequence_length) {
  OSCAR_CHECK_EQ(rope.rotary_dim % 2, 0);
  std::vector<double> frequencies(static_cast<size_t>(NumPairs(rope)));
  if (frequencies.empty()) return frequencies;
  const bool dynamic = rope.kind == RopeKind::kDynamic;
  const double theta = dynamic ? DynamicTheta(rope, sequence_length) : rope.theta;
  const YarnRamp slowed(rope);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(rope.rotary_dim);
    // Rounded to float32 as in transformers and serving runtimes; without that, the difference is
    // visible after a thousand positions.
    const double frequency =
        1 / static_cast<float>(std::pow(theta, double{static_cast<float>(exponent)}));
    switch (rope.kind) {
      case RopeKind::kDefault:
      case RopeKind::kDynamic:
        frequencies[i] = frequency;
        break;
      case RopeKind::kLinear:
        frequencies[i] = frequency / rope.factor;
        break;
      case RopeKind::kLlama3:
        frequencies[i] = Llama3Frequency(rope, frequency);
        break;
      case RopeKind::kYarn:
        frequencies[i] = frequency * (1 - slowed(i)) + frequency / rope.factor * slowed(i);
        break;
      case RopeKind::kLongRope:
        frequencies[i] =
            frequency /
            (IsLong(rope, sequence_length) ? rope.long_factor : rope.short_factor).at(i);
        break;
      case RopeKind::kProportional:
        frequencies[i] =
            static_cast<int64_t>(i) < rope.turning_pairs ? frequency / rope.factor : 0.0;
        break;
      case RopeKind::kNone:
        OSCAR_CHECK(false);
    }
  }
  return frequencies;
}

std::string DescribeRope(const RopeSpec& rope) {
  const auto text = [&]() -> std::string {
    switch (rope.kind) {
      case RopeKind::kDefault:
        return fmt::format("default theta={}", rope.theta);
      case RopeKind::kLinear:
        return fmt::format("linear theta={} factor={}", rope.theta, rope.factor);
      case RopeKind::kLlama3:
        return fmt::format("llama3 theta={} factor={} low={} high={} original={}", rope.theta,
                           rope.factor, rope.low_freq_factor, rope.high_freq_factor,
                           rope.original_max_positions);
      case RopeKind::kDynamic:
        return fmt::format("dynamic theta={} factor={} original={}", rope.theta, rope.factor,
                           rope.original_max_positions);
      case RopeKind::kYarn:
        return fmt::format("yarn theta={} factor={} beta_fast={} beta_slow={} original={}{}",
                           rope.theta, rope.factor, rope.beta_fast, rope.beta_slow,
                           rope.original_max_positions, rope.truncate ? "" : " untruncated");
      case RopeKind::kLongRope:
        return fmt::format("longrope theta={} original={}", rope.theta,
                           rope.original_max_positions);
      case RopeKind::kProportional:
        return fmt::format("proportional theta={} factor={} turning={}", rope.theta, rope.factor,
                           2 * rope.turning_pairs);
      case RopeKind::kNone:
        return "none";
    }
    OSCAR_CHECK(false);
    return "";
  }();
  const bool interleaved = rope.layout == RopeLayout::kInterleaved;
  return text +
         (rope.attention_factor == 1 ? ""
                                     : fmt::format(" attention={:.6g}", rope.attention_factor)) +
         (interleaved ? " interleaved" : "");
}

}  // namespace oscar
