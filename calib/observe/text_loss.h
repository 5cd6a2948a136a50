// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mean next-token loss of the model on a sample of the calibration text. Only this reveals text
// that is noise to the model (another model's tokenizer, a missing template). It starts from the
// hidden states that a calibration ends with: those before the last layer with a cache. So it costs
// the part of the model that a calibration does not run: the rest of that layer, the layers after
// it, and the head, in blocks of rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/model/run/attention_source.h"

namespace oscar {

struct TextLoss {
  double mean = 0;     // nats
  int64_t tokens = 0;  // predicted tokens
  int64_t vocab_size = 0;

  // Returns whether the loss exceeds 0.75 ln(vocab_size). A model that guesses among all tokens has
  // a loss near ln(vocab_size). One that only knows token frequencies stays near 0.6
  // ln(vocab_size), and one that understands the text is far below.
  bool implausible() const;
  // Below this share of ln(vocab_size), a model knows more than token frequencies, so its forward
  // pass must be right.
  static constexpr double kProofShare = 0.6;
  double largest_proof() const;  // nats
  bool proves_forward_pass() const { return mean < largest_proof(); }
  std::string Text() const;
};

// The beginning of one of the sampled sequences.
struct TextBeginning {
  size_t sequence = 0;
  int64_t tokens = 0;
};
std::vector<TextBeginning> TextSampleOf(const std::vector<int64_t>& lengths);
// The tokens of a text's beginning, and their hidden states. RowsOf takes them from `model`, where
// the text's sequence has index `own`.
struct TextRows {
  std::vector<int32_t> ids;
  at::Tensor hidden;  // [tokens, hidden_size]; undefined: a forward pass computes it
};
TextRows RowsOf(const ModelSource& model, size_t own, int64_t tokens);

// Returns whether a finished run has the hidden states that the loss starts from. They are missing
// if all layers were resumed, or if layers after the last one with a cache read keys and values of
// an earlier layer.
bool HasTextLoss(const ModelSource& model);
// Returns the rows of all sequences of `model`; none if it has no text loss.
std::vector<TextRows> TextRowsOf(const ModelSource& model);
// Returns nothing for an empty sample.
std::optional<TextLoss> MeasureTextLoss(const ModelSource& model, std::vector<TextRows> sample);
// Measures the same with a forward pass over the sample, whether or not `model` has run.
std::optional<TextLoss> MeasureTextLossAnew(const ModelSource& model);

}  // namespace oscar
