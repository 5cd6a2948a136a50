// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From logits to the next token: the likeliest, or one drawn by temperature and nucleus (top-p;
// Holtzman et al., arXiv 1904.09751). A draw depends on the seed, the sequence's own number
// and the position in it alone, never on which sequences stand beside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace oscar {

struct SamplingOptions {
  double temperature = 0;  // of the softmax; 0: the likeliest token, always
  double top_p = 1;        // drawn from the likeliest tokens that together have this probability
  uint64_t seed = 0;
};

// Which draw it is.
struct DrawKey {
  uint64_t sequence = 0;
  uint64_t position = 0;
};

// In [0, 1), of 53 bits: splitmix64 of seed and key.
double UniformDraw(uint64_t seed, const DrawKey& key);

// One token for each row of logits [n, vocab_size]; `keys` of the rows. NumericalError if a row
// holds a NaN.
std::vector<int32_t> ChooseTokens(const at::Tensor& logits, const SamplingOptions& options,
                                  std::span<const DrawKey> keys);

}  // namespace oscar
