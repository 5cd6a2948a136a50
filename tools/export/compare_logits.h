// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a copy of a model computes what the model does: both run over the same tokens by
// oscar-capture, which stands beside this program and has LibTorch, in float32; and their logits
// held against each other. Trap: where experts are routed, a rounding may send a token to another
// one, so it is the middle token that is judged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "capture/checkpoint/dtype.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Of each token d = |x - y| / |y|, x and y its logits without their mean, which no softmax sees.
struct LogitsAgreement {
  int64_t tokens = 0;
  double middle = 0, worst = 0;  // the median of d, and the largest
  double same_next = 0;          // share of tokens with the same most likely next token

  std::string Text() const;
};

LogitsAgreement CompareLogits(const std::filesystem::path& model, const std::filesystem::path& copy,
                              const ModelSpec& spec, const std::string& device);

// What the middle token may differ by where v_proj and o_proj of every layer were rounded once to
// `stored` after a rotation; what arithmetic in float32 differs by where that is float32.
double AllowedByRounding(DType stored, size_t num_layers);

}  // namespace oscar
