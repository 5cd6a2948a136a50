// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/output_head.h"

#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "capture/model/decoder_layer.h"
#include "linalg/error.h"

namespace oscar {
namespace {

// Some releases store lm_head.weight although the configuration ties it to the embedding.
// Implementations differ in which one they take, so the two must be the same.
void CheckStoredHead(const Checkpoint& checkpoint, const ModelSpec& spec) {
  constexpr std::string_view kStoredHead = "lm_head.weight";
  if (!checkpoint.Contains(kStoredHead)) return;
  const TensorView head = checkpoint.tensor(kStoredHead),
                   embedding = checkpoint.tensor(spec.embedding);
  const bool same = head.dtype == embedding.dtype && head.shape == embedding.shape &&
                    std::ranges::equal(head.data, embedding.data);
  checkpoint.Release(kStoredHead);
  if (!same) {
    throw InputError(
        fmt::format("{}: tie_word_embeddings is set, but {} is stored and differs from {}: set "
                    "tie_word_embeddings to what the model was trained with",
                    checkpoint.directory().string(), kStoredHead, spec.embedding));
  }
}

}  // namespace

OutputHead::OutputHead(const Checkpoint& checkpoint, const ModelSpec& spec,
                       const WeightTarget& target)
    : rms_norm_eps_(spec.rms_norm_eps) {
  if (spec.tied_head) CheckStoredHead(checkpoint, spec);
  WeightLoader loader(checkpoint, target);
  norm_ = loader.Load(spec.final_norm.weight);
  head_ = loader.Load(spec.head.weight);
  loader.Finish();
}

at::Tensor OutputHead::Logits(const at::Tensor& hidden) const {
  return at::linear(RmsNorm(hidden, norm_, rms_norm_eps_), head_);
}

}  // namespace oscar
