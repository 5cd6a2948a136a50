// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mean next-token loss of the calibration text under its model, on a sample, out of what a
// calibration leaves behind: hidden states before the last layer with a cache. A text that is noise
// to the model (the tokenizer of another one, a missing template) shows here and nowhere else.
// It costs what is left of the model, which a calibration does not read: the rest of that
// layer, those behind it, and the head, by blocks of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/model/attention_source.h"

namespace oscar {

struct TextLoss {
  double mean = 0;     // nats
  int64_t tokens = 0;  // that were predicted
  int64_t vocab_size = 0;

  // A loss near ln(vocab_size) is a guess among all tokens. A model that knew their frequencies
  // alone would stay near 0.6 of it, one that reads the text far below; 0.75 is neither.
  bool implausible() const;
  std::string Text() const;
};

// Of beginnings of a few sequences. Nothing where a run left no hidden states (all its layers were
// resumed), where no sequence has two tokens, or where layers behind the last read keys and values
// of one before it.
std::optional<TextLoss> MeasureTextLoss(const ModelSource& model);

}  // namespace oscar
