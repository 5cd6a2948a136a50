// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/rope_spec.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "linalg/check.h"

namespace oscar {
namespace {

// transformers 5, _compute_llama3_parameters. Wavelengths in tokens.
double Llama3Frequency(const RopeSpec& rope, double frequency) {
  const double original = static_cast<double>(rope.original_max_positions);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

}  // namespace

std::vector<double> InverseFrequencies(const RopeSpec& rope) {
  OSCAR_CHECK_EQ(rope.rotary_dim % 2, 0);
  std::vector<double> frequencies(static_cast<size_t>(rope.rotary_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(rope.rotary_dim);
    const double frequency = std::pow(rope.theta, -exponent);
    switch (rope.kind) {
      case RopeKind::kDefault:
        frequencies[i] = frequency;
        break;
      case RopeKind::kLinear:
        frequencies[i] = frequency / rope.factor;
        break;
      case RopeKind::kLlama3:
        frequencies[i] = Llama3Frequency(rope, frequency);
        break;
    }
  }
  return frequencies;
}

std::string DescribeRope(const RopeSpec& rope) {
  switch (rope.kind) {
    case RopeKind::kDefault:
      return fmt::format("default theta={}", rope.theta);
    case RopeKind::kLinear:
      return fmt::format("linear theta={} factor={}", rope.theta, rope.factor);
    case RopeKind::kLlama3:
      return fmt::format("llama3 theta={} factor={} low={} high={} original={}", rope.theta,
                         rope.factor, rope.low_freq_factor, rope.high_freq_factor,
                         rope.original_max_positions);
  }
  OSCAR_CHECK(false);
}

}  // namespace oscar
