// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that a copy of a model computes the same as the model. It runs oscar-capture, which is
// installed beside this program and has LibTorch, on both with the same tokens in float32, and
// compares the logits. Trap: in a mixture of experts, rounding may send a token to another expert,
// so the median over tokens is checked and not the maximum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "capture/checkpoint/dtype.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// The differences d = |x - y| / |y| per token. x, y: logits minus their mean, which softmax
// ignores.
struct LogitsAgreement {
  int64_t tokens = 0;
  double middle = 0, worst = 0;  // median and maximum of d
  double same_next = 0;          // share of tokens with the same most likely next token

  std::string Text() const;
};

LogitsAgreement CompareLogitsOfCopy(const std::filesystem::path& model,
                                    const std::filesystem::path& copy, const ModelSpec& spec,
                                    const std::string& device);

// Returns the largest allowed median of d if v_proj and o_proj of every layer are rounded to
// `stored` once, after a rotation. For float32 this is the error of float32 arithmetic.
double AllowedByRounding(DType stored, size_t num_layers);

}  // namespace oscar
