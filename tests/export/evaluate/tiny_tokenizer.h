// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads the tokenizer of the bundled model once.
#pragma once

#include "capture/text/tokenizer/tokenizer.h"
#include "tests/support/test_data.h"

namespace oscar {

inline const Tokenizer& TinyTokenizer() {
  static const Tokenizer tokenizer = Tokenizer::Load(TestData("tiny-qwen3/tokenizer.json"));
  return tokenizer;
}

}  // namespace oscar
