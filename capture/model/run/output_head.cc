// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/output_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "capture/model/run/attention.h"
#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/product.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Some releases store lm_head.weight although the config ties it to the embedding. Implementations
// differ in which one they use, so the two must be equal.
void CheckStoredHead(const Checkpoint& checkpoint, const ModelSpec& spec) {
  std::string stored_head;
  for (const char* name : {"lm_head.weight", "language_model.lm_head.weight"}) {
    if (checkpoint.Contains(name)) stored_head = name;
  }
  if (stored_head.empty()) return;
  const TensorView head = checkpoint.tensor(stored_head),
                   embedding = checkpoint.tensor(spec.embedding);
  const bool same = head.dtype == embedding.dtype && head.shape == embedding.shape &&
                    std::ranges::equal(head.data, embedding.data);
  checkpoint.Release(stored_head);
  if (!same) {
    throw InputError(
        fmt::format("{}: tie_word_embeddings is set, but {} is stored and differs from {}; set "
                    "tie_word_embeddings to the value that the model was trained with",
                    checkpoint.directory().string(), stored_head, spec.embedding));
  }
}

}  // namespace

OutputHead::OutputHead(const Checkpoint& checkpoint, const ModelSpec& spec,
                       const WeightTarget& target)
    : spec_(spec) {
  if (spec.tied_head) CheckStoredHead(checkpoint, spec);
  WeightLoader loader(checkpoint, target);
  norm_ = LoadNorm(loader, spec.final_norm);
  head_.weight = loader.Load(spec.head.weight);
  if (!spec.head.bias.empty()) head_.bias = loader.Load(spec.head.bias);
  loader.Finish();
}

at::Tensor OutputHead::Logits(const at::Tensor& hidden) const {
  const at::Tensor normed = Norm(spec_.final_norm, norm_, spec_.rms_norm_eps, hidden);
  at::Tensor logits = LinearProduct(normed, head_.weight, head_.bias);
  if (spec_.logit_multiplier != 1) logits.mul_(spec_.logit_multiplier);
  SoftCap(spec_.logit_softcap, logits);
  return logits;
}

}  // namespace oscar
