// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the next token from logits: the most likely one, or a draw with temperature and nucleus
// sampling (top-p; Holtzman et al., arXiv 1904.09751). A draw only depends on the seed, the
// sequence's number and the position, never on other sequences in the batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace oscar {

struct SamplingOptions {
  double temperature = 0;  // softmax temperature; 0: takes the most likely token
  double top_p = 1;        // draws from the most likely tokens with this total probability
  uint64_t seed = 0;
};

// Identifies a draw.
struct DrawKey {
  uint64_t sequence = 0;
  uint64_t position = 0;
};

// A number in [0, 1) with 53 bits: splitmix64 of seed and key.
double UniformDraw(uint64_t seed, const DrawKey& key);

// Chooses one token for each row of logits [n, vocab_size]; `keys` has one key per row. Throws
// NumericalError if a row contains a NaN.
std::vector<int32_t> ChooseTokens(const at::Tensor& logits, const SamplingOptions& options,
                                  std::span<const DrawKey> keys);

}  // namespace oscar
