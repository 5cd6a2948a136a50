// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/text_loss.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "capture/model/decoder_layer.h"
#include "capture/model/layer_weights.h"
#include "capture/model/weight_loader.h"

namespace oscar {
namespace {

constexpr size_t kSequencesSampled = 4;     // of which beginnings are taken
constexpr int64_t kTokensOfEach = 256;      // at most
constexpr int64_t kHeadBytes = 64LL << 20;  // of one block of the head's rows
constexpr double kImplausibleShare = 0.75;  // of ln(vocab_size)

class NoObserver : public LayerObserver {
 public:
  void OnAttention(const AttentionView& /*view*/) override {}
};

bool ReadsEarlierLayers(const ModelSpec& spec) {
  return std::ranges::any_of(spec.uncached, [&](const LayerSpec& layer) {
    return layer.attention.shared_kv && *layer.attention.shared_kv != spec.layers.back().layer_id;
  });
}

// Beginnings of sequences, and their rows of the hidden states.
struct TextSample {
  std::vector<std::vector<int32_t>> sequences;
  std::vector<at::Tensor> rows;          // each [length, hidden_size]
  std::vector<int64_t> predicting, ids;  // rows of all of them, and the tokens that follow
};

TextSample TakeSample(const ModelSource& model) {
  TextSample sample;
  const auto& sequences = model.sequences();
  const size_t step = std::max<size_t>(1, sequences.size() / kSequencesSampled);
  int64_t first_token = 0, first_row = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<int32_t>& all = sequences[s];
    const int64_t length = std::min(kTokensOfEach, std::ssize(all));
    if (s % step == 0 && sample.sequences.size() < kSequencesSampled && length > 1) {
      sample.sequences.emplace_back(all.begin(), all.begin() + length);
      sample.rows.push_back(model.hidden().narrow(0, first_token, length));
      for (int64_t i = 0; i + 1 < length; ++i) {
        sample.predicting.push_back(first_row + i);
        sample.ids.push_back(all[static_cast<size_t>(i + 1)]);
      }
      first_row += length;
    }
    first_token += std::ssize(all);
  }
  return sample;
}

// -log softmax of the token that follows, over blocks of the vocabulary.
// [n, hidden_size], [n] -> [n] float32
at::Tensor Losses(const LayerLoop& loop, const at::Tensor& hidden, const at::Tensor& ids) {
  const ModelSpec& spec = loop.spec();
  WeightLoader loader(loop.checkpoint(), {loop.device(), loop.dtype()}, loop.options().read);
  const NormWeights norm = LoadNorm(loader, spec.final_norm);
  at::Tensor bias;
  if (!spec.head.bias.empty()) bias = loader.Load(spec.head.bias);
  loader.Finish();
  const at::Tensor normed = Norm(spec.final_norm, norm, spec.rms_norm_eps, hidden);
  const auto floats = hidden.options().dtype(at::kFloat);
  at::Tensor sum = at::full({hidden.size(0)}, -INFINITY, floats);  // log of exponentials
  at::Tensor own = at::zeros({hidden.size(0)}, floats);
  const int64_t step = std::max<int64_t>(
      1, kHeadBytes / (spec.hidden_size * static_cast<int64_t>(hidden.element_size())));
  for (int64_t first = 0; first < spec.vocab_size; first += step) {
    const int64_t count = std::min(step, spec.vocab_size - first);
    const at::Tensor weight = loader.Load(spec.head.weight, first, count);
    loader.Finish();
    at::Tensor logits =
        at::linear(normed, weight, bias.defined() ? bias.narrow(0, first, count) : bias)
            .to(at::kFloat);
    if (spec.logit_multiplier != 1) logits.mul_(spec.logit_multiplier);
    if (spec.logit_softcap != 0) logits.div_(spec.logit_softcap).tanh_().mul_(spec.logit_softcap);
    sum = at::logaddexp(sum, logits.logsumexp(1));
    const at::Tensor here = ids.ge(first).logical_and(ids.lt(first + count));
    const at::Tensor at_ids = ids.sub(first).clamp(0, count - 1).unsqueeze(1);
    own = at::where(here, logits.gather(1, at_ids).squeeze(1), own);
  }
  return sum.sub(own);
}

}  // namespace

bool TextLoss::implausible() const {
  return !(mean < kImplausibleShare * std::log(static_cast<double>(vocab_size)));
}

std::string TextLoss::Text() const {
  std::string text =
      fmt::format("text: mean loss {:.2f} nats on {} tokens of it (a guess among {} ids: {:.2f})",
                  mean, tokens, vocab_size, std::log(static_cast<double>(vocab_size)));
  if (implausible())
    text +=
        ". This text is noise to this model, and rotations fitted to it are of no use: does "
        "tokenizer.json belong to the model, do the data and the chat template?";
  return text;
}

std::optional<TextLoss> MeasureTextLoss(const ModelSource& model) {
  const LayerLoop& loop = model.loop();
  if (!model.hidden().defined() || ReadsEarlierLayers(loop.spec())) return std::nullopt;
  const TextSample sample = TakeSample(model);
  if (sample.ids.empty()) return std::nullopt;
  LoopOptions options = loop.options();
  options.need_final_hidden = true;
  options.shared_queries = false;
  ModelSource rest(loop.checkpoint(), loop.spec(), sample.sequences, loop.device(), loop.dtype(),
                   options);
  rest.Restore(at::cat(sample.rows));
  NoObserver observer;
  rest.Run(loop.spec().layers.size() - 1, observer, [](size_t) { return true; });
  const at::Tensor rows = at::tensor(sample.predicting, at::kLong).to(loop.device());
  const at::Tensor losses = Losses(loop, rest.hidden().index_select(0, rows),
                                   at::tensor(sample.ids, at::kLong).to(loop.device()));
  return TextLoss{.mean = losses.to(at::kDouble).mean().item<double>(),
                  .tokens = std::ssize(sample.ids),
                  .vocab_size = loop.spec().vocab_size};
}

}  // namespace oscar
