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
#include <vector>

#include "capture/model/run/attention_source.h"

namespace oscar {

struct TextLoss {
  double mean = 0;     // nats
  int64_t tokens = 0;  // that were predicted
  int64_t vocab_size = 0;

  // A loss near ln(vocab_size) is a guess among all tokens. A model that knew their frequencies
  // alone would stay near 0.6 of it, one that reads the text far below; 0.75 is neither.
  bool implausible() const;
  // Below the loss of a model that knew the frequencies alone: the forward pass reads the text.
  static constexpr double kProofShare = 0.6;
  double largest_proof() const;  // nats
  bool proves_forward_pass() const { return mean < largest_proof(); }
  std::string Text() const;
};

// The beginning of one of the sequences that are looked at.
struct TextBeginning {
  size_t sequence = 0;
  int64_t tokens = 0;
};
std::vector<TextBeginning> TextSampleOf(const std::vector<int64_t>& lengths);
// Its tokens, and their hidden states in `model`, of which it is sequence number `own`.
struct TextRows {
  std::vector<int32_t> ids;
  at::Tensor hidden;  // [tokens, hidden_size]; undefined: a forward pass computes it
};
TextRows RowsOf(const ModelSource& model, size_t own, int64_t tokens);

// Whether hidden states of a run that is done are those that the loss starts with. Not where it
// left none (all its layers were resumed), and not where layers behind the last one read keys and
// values of one before it.
bool HasTextLoss(const ModelSource& model);
// The rows of all sequences of `model`; none where it has no text loss.
std::vector<TextRows> TextRowsOf(const ModelSource& model);
// Returns nothing for an empty sample.
std::optional<TextLoss> MeasureTextLoss(const ModelSource& model, std::vector<TextRows> sample);
// The same by a forward pass of its own over the sample, whether or not `model` has run.
std::optional<TextLoss> MeasureTextLossAnew(const ModelSource& model);

}  // namespace oscar
